// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// index finds the pods that have to do with others, and the nodes they are on. Most pods of a
// cluster have nothing to do with those that are to be placed, so they are not looked at
// node by node, and selectors are not asked about pods without the label that they ask for.
type index struct {
	peersAt homes                 // of residents, by peer
	antisAt homes                 // of residents, by term of anti-affinity
	having  map[model.Label][]int // peers, ascending
	asking  map[model.Label][]int // terms, ascending
	anyway  []int                 // terms that ask for no label with one value, ascending
	minds   []found               // by peer: the terms that pick it
}

// found is numbers of what picks or is picked, ascending, as far as it was looked for.
type found struct {
	numbers []int
	asked   int // those below were looked at
}

func newIndex() index {
	return index{having: map[model.Label][]int{}, asking: map[model.Label][]int{}}
}

// selector is a PodSelector with the peers that it picks.
type selector struct {
	*model.PodSelector
	peers found
}

// label returns a label that all pods have which the selector picks, if it asks for any with
// one value.
func label(s *model.PodSelector) (model.Label, bool) {
	for _, r := range s.Labels {
		if !r.Complement && len(r.Values) == 1 {
			return model.Label{Key: r.Key, Value: r.Values[0]}, true
		}
	}
	return model.Label{}, false
}

// enter takes in a new peer, whose number is the highest.
func (m *Memory) enter(p *model.Peer) {
	for _, l := range p.Labels {
		m.having[l] = append(m.having[l], len(m.known)-1)
	}
}

// expect takes in a new term, whose number is the highest.
func (m *Memory) expect(t *model.PodTerm) {
	if l, ok := label(&t.Select); ok {
		m.asking[l] = append(m.asking[l], len(m.antis)-1)
		return
	}
	m.anyway = append(m.anyway, len(m.antis)-1)
}

// picked returns the peers that the selector picks, ascending.
func (m *Memory) picked(s *selector) []int {
	if l, ok := label(s.PodSelector); s.peers.asked < len(m.known) && ok {
		s.peers.add(m.having[l], func(p int) bool { return s.Selects(m.known[p]) })
	} else {
		for p := s.peers.asked; p < len(m.known); p++ {
			if s.Selects(m.known[p]) {
				s.peers.numbers = append(s.peers.numbers, p)
			}
		}
	}
	s.peers.asked = len(m.known)
	return s.peers.numbers
}

// add appends those of the numbers, ascending, that were not looked at and do.
func (f *found) add(some []int, do func(int) bool) {
	from, _ := slices.BinarySearch(some, f.asked)
	for _, n := range some[from:] {
		if do(n) {
			f.numbers = append(f.numbers, n)
		}
	}
}

// picks reports whether the selector picks a peer.
func (m *Memory) picks(s *selector, peer int) bool {
	_, ok := slices.BinarySearch(m.picked(s), peer)
	return ok
}

// minding returns the terms of anti-affinity that pick the peer, ascending.
func (m *Memory) minding(peer int) []int {
	for len(m.minds) <= peer {
		m.minds = append(m.minds, found{})
	}
	f, p := &m.minds[peer], m.known[peer]
	if f.asked < len(m.antis) {
		picks := func(term int) bool { return m.antis[term].Select.Selects(p) }
		f.add(m.anyway, picks)
		for _, l := range p.Labels {
			f.add(m.asking[l], picks)
		}
		slices.Sort(f.numbers)
		f.asked = len(m.antis)
	}
	return f.numbers
}

// homes are where pods are, by number of their peer or of a term that they have. Those of
// one number are in order of the sites.
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
