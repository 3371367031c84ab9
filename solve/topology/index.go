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
	known    []*model.Peer         // by number
	antis    []anti                // by number
	antiKeys map[string]int        // how many terms residents have, by topology key
	peersAt  homes                 // of residents, by peer
	antisAt  homes                 // of residents, by term of anti-affinity
	having   map[model.Label][]int // peers, ascending
	asking   map[model.Label][]int // terms, ascending
	anyway   []int                 // terms that ask for no label with one value, ascending
	minds    []found               // by peer: the terms that pick it
}

// found is numbers of what picks or is picked, ascending, as far as it was looked for.
type found struct {
	numbers []int
	asked   int // those below were looked at
}

func newIndex() index {
	return index{antiKeys: map[string]int{}, having: map[model.Label][]int{}, asking: map[model.Label][]int{}}
}

// anti is a term of anti-affinity of pods on nodes.
type anti struct {
	*model.PodTerm
	text string
}

// selector is a PodSelector with the peers that it picks.
type selector struct {
	*model.PodSelector
	peers found
}

// enter takes in a new peer, and returns its number.
func (x *index) enter(p *model.Peer) int {
	n := len(x.known)
	x.known = append(x.known, p)
	for _, l := range p.Labels {
		x.having[l] = append(x.having[l], n)
	}
	return n
}

// expect takes in a new term of anti-affinity, and returns its number.
func (x *index) expect(a anti) int {
	n := len(x.antis)
	x.antis = append(x.antis, a)
	if l, ok := a.Select.Label(); ok {
		x.asking[l] = append(x.asking[l], n)
	} else {
		x.anyway = append(x.anyway, n)
	}
	return n
}

// picked returns the peers that the selector picks, ascending.
func (x *index) picked(s *selector) []int {
	if l, ok := s.Label(); s.peers.asked < len(x.known) && ok {
		s.peers.add(x.having[l], func(p int) bool { return s.Selects(x.known[p]) })
	} else {
		for p := s.peers.asked; p < len(x.known); p++ {
			if s.Selects(x.known[p]) {
				s.peers.numbers = append(s.peers.numbers, p)
			}
		}
	}
	s.peers.asked = len(x.known)
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
func (x *index) picks(s *selector, peer int) bool {
	_, ok := slices.BinarySearch(x.picked(s), peer)
	return ok
}

// minding returns the terms of anti-affinity that pick the peer, ascending.
func (x *index) minding(peer int) []int {
	for len(x.minds) <= peer {
		x.minds = append(x.minds, found{})
	}
	f, p := &x.minds[peer], x.known[peer]
	if f.asked < len(x.antis) {
		picks := func(term int) bool { return x.antis[term].Select.Selects(p) }
		f.add(x.anyway, picks)
		for _, l := range p.Labels {
			f.add(x.asking[l], picks)
		}
		slices.Sort(f.numbers)
		f.asked = len(x.antis)
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
