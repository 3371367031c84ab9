// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Memory is what was compiled of the last Snapshot, to be quicker about the next.
// The zero value is empty. It is not safe for concurrent use.
type Memory struct {
	fit.Memory
	rules topology.Memory
}
