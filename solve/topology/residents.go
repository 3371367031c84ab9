// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"

	"karpenter/model"
)

// Apart reports which of the nodes pods are kept away from by required anti-affinity on the
// hostname, theirs or that of pods which stay there.
func (m *Memory) Apart(nodes []model.Node, shape *model.Shape, peer *model.Peer) []bool {
	m.see(nodes)
	out := make([]bool, len(nodes))
	note := func(some []home) {
		for _, h := range some {
			out[h.site] = out[h.site] || !m.resident(h).Terminating
		}
	}
	for i := range shape.PodTerms {
		if t := &shape.PodTerms[i]; t.Anti && t.Weight == 0 && t.Key == model.LabelHostname {
			for _, p := range m.picked(m.selector(&t.Select)) {
				note(value(m.peersAt, p))
			}
		}
	}
	for _, term := range m.minding(m.peer(peer)) {
		if m.antis[term].Key == model.LabelHostname {
			note(value(m.antisAt, term))
		}
	}
	return out
}

// Selected returns the nodes with pods that stay there and that the selector picks.
func (m *Memory) Selected(nodes []model.Node, s *model.PodSelector) []int {
	m.see(nodes)
	var out []int
	for _, p := range m.picked(m.selector(s)) {
		for _, h := range value(m.peersAt, p) {
			if !m.resident(h).Terminating {
				out = append(out, h.site)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
