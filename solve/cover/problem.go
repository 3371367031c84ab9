package cover

import (
	"math"

	"karpenter/solve/fit"
	"karpenter/solve/work"
)

// Candidate is a kind of node that can be launched in any number.
type Candidate struct {
	Price  float64 // ≥ 0
	Room   []int64 // by resource
	Serves fit.Bits
	Pool   int
	Uses   []int64 // of the limits of its pool, by the index of Problem.Limits[Pool]
}

// Item is a number of pods that may be exchanged for each other.
type Item struct {
	Request []int64 // by resource
	Count   int
	Class   int      // Candidate.Serves says which classes a candidate can take
	Most    int      // pods of the item that one node takes; 0 = no bound
	Groups  []int    // in which the item counts
	Apart   fit.Bits // items whose pods must not share a node with this one's; nil = none
}

// Problem is what is to be covered, and by what.
type Problem struct {
	Candidates []Candidate // cheapest first
	Items      []Item
	Groups     []int     // by group: how many pods of its items one node takes together
	Limits     [][]int64 // by pool: what its nodes may still use

	// Agree reports whether pods of the items may share a node of the candidate
	// as far as the labels of its pool go; nil = they always may.
	Agree func(candidate int, items []int) bool

	Epsilon float64 // part of every price that is charged but not paid, to prefer fewer nodes
}

// Node is a number of equal nodes to launch.
type Node struct {
	Candidate int
	Count     int
	Take      []Portion // on each
}

// Portion is how many pods of an item one node takes.
type Portion struct{ Item, Pods int }

// Result is a cover.
type Result struct {
	Nodes     []Node
	Left      []int     // by item: pods that no node was found for
	Values    []float64 // by item: dual value of one pod; 0 where no candidate serves it
	Columns   Columns   // with which the master problem was solved
	Abandoned bool      // the items are worth more than Options.Most, so no nodes were chosen
}

// Options says how to solve a Problem.
type Options struct {
	Most  float64 // give up when the items are worth more than this together
	Prove bool    // the values are for a proof, and worth some work
	Known Columns // of a problem that differs in nothing but prices: a start that saves work
	Rows  int     // the master problem has at most about so many rows; 0 = a number that suits the items
}

// Columns are patterns for the rows of a master problem.
type Columns []pattern

// Unlimited returns the options that look for the cheapest cover, whatever it
// costs.
func Unlimited() Options { return Options{Most: math.Inf(1), Prove: true} }

// Solve returns a cheap cover.
func Solve(p *Problem, o Options, budget *work.Budget) *Result {
	s := newSolver(p, budget)
	m := newMaster(s, s.aggregate(o.Rows))
	m.patterns = append(m.patterns, o.Known...)
	r := &Result{}
	if !s.dive(m, r, o) {
		r.Abandoned = true
	} else {
		s.coverRest()
		s.improve()
	}
	r.Nodes, r.Left, r.Values = s.nodes, s.left, s.values
	return r
}

// Values returns the dual value of one pod of each item, without a cover.
func Values(p *Problem, o Options, budget *work.Budget) []float64 {
	s := newSolver(p, budget)
	m := newMaster(s, s.aggregate(o.Rows))
	if m.restart() {
		m.optimise(math.MaxInt, greedily)
		if o.Prove {
			m.refine()
		}
		s.value(m)
	}
	return s.values
}

// solver holds the cover under construction.
type solver struct {
	*Problem
	budget *work.Budget

	resources int         // dimensions of Room and Request
	dims      int         // those, and the groups that the master problem knows
	ranked    []int       // those groups: at or above len(Groups) they are cliques of items kept apart
	cliques   []int       // by item: the clique it is in; -1 = none
	room      [][]int64   // by candidate, then dimension
	space     [][]float64 // the same in units of the largest room
	unit      []float64
	items     []line

	limits [][]int64
	left   []int
	nodes  []Node
	values []float64
	hand   hand
}

// line is what pricing knows of an item, or of a row.
type line struct {
	request []int64   // by dimension
	weight  []float64 // the same in units of the largest room
	class   int
	most    int   // pods one node takes; 0 = no bound
	members []int // items, smallest first
}

func newSolver(p *Problem, budget *work.Budget) *solver {
	s := &solver{Problem: p, budget: budget, left: make([]int, len(p.Items)), values: make([]float64, len(p.Items))}
	for i := range p.Items {
		s.left[i] = p.Items[i].Count
	}
	for _, l := range p.Limits {
		s.limits = append(s.limits, append([]int64(nil), l...))
	}
	if len(p.Candidates) > 0 {
		s.resources = len(p.Candidates[0].Room)
	}
	s.hand = hand{solver: s, free: make([]int64, s.resources), grouped: make([]int, len(p.Groups)), pods: make([]int, len(p.Items))}
	s.rankGroups()
	s.dims = s.resources + len(s.ranked)
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

// roomOf returns the room of a candidate in every dimension.
func (s *solver) roomOf(c int) []int64 {
	out := make([]int64, s.dims)
	for r, v := range s.Candidates[c].Room {
		out[r] = max(v, 0)
	}
	for d, g := range s.ranked {
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
	for d, g := range s.ranked {
		if s.inGroup(i, g) {
			request[s.resources+d] = 1
		}
	}
	return line{request: request, weight: s.scaled(request), class: it.Class, most: it.Most, members: []int{i}}
}

func (s *solver) scaled(dense []int64) []float64 {
	out := make([]float64, len(dense))
	for d, v := range dense {
		out[d] = float64(v) / s.unit[d]
	}
	return out
}

// allow returns how many nodes of the candidate the limits of its pool allow, at
// most want.
func (s *solver) allow(c, want int) int {
	cand := &s.Candidates[c]
	n := int64(want)
	for i, used := range cand.Uses {
		switch left := s.limits[cand.Pool][i]; {
		case left < 0:
			return 0
		case used > 0:
			n = min(n, left/used)
		}
	}
	return int(n)
}

// use takes count nodes of the candidate from the limits of its pool.
func (s *solver) use(c, count int) {
	cand := &s.Candidates[c]
	for i, used := range cand.Uses {
		s.limits[cand.Pool][i] -= used * int64(count)
	}
}

// whole returns how many times request fits into room.
func whole(room, request []int64) int {
	n := int64(math.MaxInt32)
	for d, v := range request {
		if v > 0 {
			if room[d] < v {
				return 0
			}
			n = min(n, room[d]/v)
		}
	}
	return int(n)
}

// Count returns how many nodes the cover has.
func (r *Result) Count() int {
	n := 0
	for i := range r.Nodes {
		n += r.Nodes[i].Count
	}
	return n
}

// LeavesMoreThan reports whether more pods of some item find no node than in the
// other cover.
func (r *Result) LeavesMoreThan(o *Result) bool {
	for i := range r.Left {
		if r.Left[i] > o.Left[i] {
			return true
		}
	}
	return false
}
