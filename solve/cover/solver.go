// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"slices"

	"karpenter/solve/work"
)

// solver holds the cover under construction.
type solver struct {
	*Problem
	groups groups
	budget *work.Budget

	resources int         // dimensions of Room and Request
	dims      int         // those, and the groups that the master problem knows
	room      [][]int64   // by candidate, then dimension
	space     [][]float64 // the same in units of the largest room
	unit      []float64
	items     []line

	limits []int64
	left   []int
	nodes  []Node
	values []float64 // by item
	master []float64 // by item
	hand   *hand
}

func newSolver(p *Problem, budget *work.Budget) *solver {
	s := &solver{Problem: p, budget: budget, values: make([]float64, len(p.Items)), master: make([]float64, len(p.Items))}
	s.start()
	if len(p.Candidates) > 0 {
		s.resources = len(p.Candidates[0].Room)
	}
	s.hand = newHand(p, s.resources)
	s.groups = newGroups(p, budget)
	s.dims = s.resources + len(s.groups.ranked)
	s.unit = make([]float64, s.dims)
	for c := range p.Candidates {
		s.room = append(s.room, s.roomOf(c))
		for d, v := range s.room[c] {
			s.unit[d] = max(s.unit[d], float64(v), 1)
		}
	}
	for _, room := range s.room {
		s.space = append(s.space, s.scaled(room))
	}
	for i := range p.Items {
		s.items = append(s.items, s.lineOf(i))
	}
	return s
}

// start begins a cover.
func (s *solver) start() {
	s.nodes, s.left, s.limits = nil, make([]int, len(s.Items)), slices.Clone(s.Limits)
	for i := range s.Items {
		s.left[i] = s.Items[i].Count
	}
}

// cost is what the nodes cost.
func (s *solver) cost() float64 {
	sum := 0.0
	for i := range s.nodes {
		sum += s.Candidates[s.nodes[i].Candidate].Price * float64(s.nodes[i].Count)
	}
	return sum
}

func total(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// within runs f with a part of the budget that is left.
func (s *solver) within(part float64, f func()) {
	whole := s.budget
	s.budget = whole.Part(part)
	f()
	whole.Return(s.budget)
	s.budget = whole
}

// roomOf returns the room of a candidate in every dimension.
func (s *solver) roomOf(c int) []int64 {
	out := make([]int64, s.dims)
	for r, v := range s.Candidates[c].Room {
		out[r] = max(v, 0)
	}
	for d, g := range s.groups.ranked {
		out[s.resources+d] = 1
		if g < len(s.Groups) {
			out[s.resources+d] = int64(s.Groups[g])
		}
	}
	return out
}

// lineOf returns the line of one item.
func (s *solver) lineOf(i int) line {
	it := &s.Items[i]
	request := make([]int64, s.dims)
	for r, v := range it.Request {
		request[r] = max(v, 0)
	}
	for d, g := range s.groups.ranked {
		if s.groups.has(i, g) {
			request[s.resources+d] = 1
		}
	}
	return line{request: request, weight: s.scaled(request), class: it.Class, most: it.Most, members: []int{i}, likely: s.likely([]int{i})}
}

func (s *solver) scaled(dense []int64) []float64 {
	out := make([]float64, len(dense))
	for d, v := range dense {
		out[d] = float64(v) / s.unit[d]
	}
	return out
}

// allow returns how many nodes of the candidate limits allow, at most want.
func (s *solver) allow(c, want int) int {
	n := int64(want)
	for _, u := range s.Candidates[c].Uses {
		switch left := s.limits[u.Limit]; {
		case left < 0:
			return 0
		case u.Amount > 0:
			n = min(n, left/u.Amount)
		}
	}
	return int(n)
}

// use takes count nodes of the candidate from limits.
func (s *solver) use(c, count int) {
	for _, u := range s.Candidates[c].Uses {
		s.limits[u.Limit] -= u.Amount * int64(count)
	}
}

// launch makes the node, and up to count-1 equal ones, part of the cover as far
// as limits and pods allow. It returns how many.
func (s *solver) launch(count int) int {
	h := s.hand
	count = s.allow(h.candidate, count)
	if len(h.take) == 0 || count == 0 {
		return 0
	}
	n := Node{Candidate: h.candidate}
	for _, t := range h.take {
		t.Pods = h.pods[t.Item]
		count = max(min(count, s.left[t.Item]/t.Pods), 1)
		n.Take = append(n.Take, t)
	}
	n.Count = count
	for _, t := range n.Take {
		s.left[t.Item] -= t.Pods * count
	}
	s.use(h.candidate, count)
	s.nodes = append(s.nodes, n)
	s.budget.Spend(len(n.Take))
	h.begin(h.candidate, s.left)
	return count
}
