// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"karpenter/model"
	"karpenter/solve/fit"
)

// placement is a pod put on a node of the Snapshot.
type placement struct {
	kind int
	site int
	pod  model.Pod
}

// bin is a number of equal new nodes.
type bin struct {
	offer    int
	count    int
	take     []portion
	capacity model.Resources // of one node, as reserved in the pool's limits
	onDemand bool            // it is launched on demand, for the share that its pool asks for
	within   fit.Bits        // offers, in the window of its pool, it is launched as, so that workloads are spread over spot pools; nil = any
	zone     string          // that all of within are in
}

// portion is how many pods of a demand one node takes.
type portion struct {
	demand int
	pods   int
	chosen []model.Pod // the pods of all nodes of the bin; set when it is committed
}
