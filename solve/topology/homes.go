// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// homes are where pods are, by number of their peer or of a term that they have. Those of
// one number are in order of the sites. Most pods of a cluster have nothing to do with those
// that are to be placed, so they are not looked at node by node.
type homes [][]home

// home is pods on a node: those of one of its residents.
type home struct{ site, resident int }

func (h *homes) add(number int, at home) {
	for len(*h) <= number {
		*h = append(*h, nil)
	}
	some := (*h)[number]
	i, _ := slices.BinarySearchFunc(some, at.site+1, bySite)
	(*h)[number] = slices.Insert(some, i, at)
}

// remove removes what is on the site.
func (h *homes) remove(number, site int) {
	some := (*h)[number]
	from, _ := slices.BinarySearchFunc(some, site, bySite)
	to, _ := slices.BinarySearchFunc(some, site+1, bySite)
	(*h)[number] = slices.Delete(some, from, to)
}

func bySite(h home, site int) int { return cmp.Compare(h.site, site) }

// resident returns the pods that are at home there.
func (m *Memory) resident(h home) *model.Resident { return &m.sites[h.site].residents[h.resident] }

// vacate forgets the pods on a site.
func (m *Memory) vacate(site int) {
	for _, p := range m.sites[site].peers {
		m.peersAt.remove(p, site)
	}
	for _, term := range m.sites[site].anti {
		m.antisAt.remove(term, site)
	}
}

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
			sel := m.selector(&t.Select)
			for p, some := range m.peersAt {
				if len(some) > 0 && m.picks(sel, p) {
					note(some)
				}
			}
		}
	}
	p := m.peer(peer)
	for term, some := range m.antisAt {
		if a := &m.antis[term]; len(some) > 0 && a.Key == model.LabelHostname && m.picks(a.selector, p) {
			note(some)
		}
	}
	return out
}
