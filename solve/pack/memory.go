// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Memory is what was compiled of the last Snapshot, to be quicker about the next.
// The zero value is empty. It is not safe for concurrent use.
type Memory struct {
	fit.Memory
	rules topology.Memory
}

// Apart reports which of the nodes pods are kept away from by required anti-affinity on the
// hostname, theirs or that of pods which stay there.
func (m *Memory) Apart(nodes []model.Node, shape *model.Shape, peer *model.Peer) []bool {
	return m.rules.Apart(nodes, shape, peer)
}

// Selected returns the nodes with pods that stay there and that the selector picks.
func (m *Memory) Selected(nodes []model.Node, s *model.PodSelector) []int {
	return m.rules.Selected(nodes, s)
}
