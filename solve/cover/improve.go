// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"math/rand/v2"
	"slices"

	"karpenter/solve/work"
)

// Bounds of the search for improvements.
const (
	improveNodes = 400  // larger plans are close to their bound already
	improveItems = 400  // items of which the torn nodes may have some
	improveTries = 200  // without success, before giving up
	scarceTries  = 4000 // the same, where what costs least is scarce, and dual values say less
	improveWidth = 4    // most nodes torn down at once
	improveShare = 0.5  // of the budget that is left
)

// improve tears down a few of the nodes at a time and covers their pods again,
// with the values of pods disturbed a little, and keeps what is cheaper.
// Rounding hurts small plans most, and this is where it is mended. It gives up after so many
// tries without success.
func (s *solver) improve(most int) {
	nodes := 0
	for i := range s.nodes {
		nodes += s.nodes[i].Count
	}
	if nodes < 1 || nodes > improveNodes || len(s.items) > improveItems {
		return
	}
	s.unroll()
	s.within(improveShare, func() {
		r := newRebuilder(s)
		for tries := 0; tries < most && !s.budget.Spent(); tries++ {
			if r.rebuild(r.choose()) {
				tries = 0
			}
		}
	})
}

// Improve returns nodes that cost less than these of a cover, for the same pods, if it finds any;
// values are those of the items, as in Result. Limits may leave few of the nodes that cost least.
func Improve(p *Problem, nodes []Node, values []float64, budget *work.Budget) []Node {
	s := newSolver(p, budget)
	s.nodes, s.values = slices.Clone(nodes), values
	for _, n := range nodes {
		s.use(n.Candidate, n.Count)
	}
	s.improve(scarceTries)
	return s.nodes
}

// unroll turns a number of equal nodes into as many single ones.
func (s *solver) unroll() {
	var single []Node
	for _, n := range s.nodes {
		for range n.Count {
			single = append(single, Node{n.Candidate, 1, n.Take})
		}
	}
	s.nodes = single
}

// rebuilder tears nodes down and covers their pods again.
type rebuilder struct {
	*pricer
	rng        *rand.Rand
	candidates []int     // worth a look
	favour     []float64 // how much more expensive each of them is made to look
	rankings   []ranking // of each of them
	active     []int     // items of the nodes torn down
	portion    []int     // by item: pods of it that one node gets at most
}

// ranking is in which order a candidate is filled with the torn pods.
type ranking struct {
	known bool
	items []density
	space float64 // what the room of the candidate counts for, in the unit of density
}

// How wide the shortlist of candidates is.
const (
	shortlistRatio = 0.85 // of worth to price, when filled from all pods
	shortlistCheap = 24   // and this many of the cheapest, for what is left over
	shortlistMost  = 96
)

// newRebuilder picks the candidates that can be part of a good cover: those that
// come close to their price, and small ones.
func newRebuilder(s *solver) *rebuilder {
	r := &rebuilder{pricer: newPricer(s, s.items), rng: rand.New(rand.NewPCG(1, 2))} // a fixed seed: plans must be repeatable
	copy(r.values, s.values)
	for i := range s.Items {
		r.count[i] = s.Items[i].Count
	}
	cheap := 0
	for c := range s.Candidates { // cheapest first
		limit := r.limit(c, 0)
		if cheap >= shortlistCheap && limit < shortlistRatio*s.Candidates[c].Price {
			continue
		}
		_, w := r.fill(c, limit)
		if w > 0 {
			cheap++
		}
		if w >= shortlistRatio*s.Candidates[c].Price || w > 0 && cheap <= shortlistCheap {
			r.candidates = append(r.candidates, c)
		}
		if len(r.candidates) == shortlistMost || s.budget.Spent() {
			break
		}
	}
	r.favour = make([]float64, len(r.candidates))
	r.rankings = make([]ranking, len(r.candidates))
	r.portion = make([]int, len(s.items))
	clear(r.count)
	return r
}

// choose draws which nodes to tear down.
func (r *rebuilder) choose() []int {
	n := min(len(r.nodes), 1+r.rng.IntN(improveWidth))
	torn := make([]int, 0, n)
	for len(torn) < n {
		if i := r.rng.IntN(len(r.nodes)); !slices.Contains(torn, i) {
			torn = append(torn, i)
		}
	}
	return torn
}

// rebuild replaces the torn nodes by cheaper ones for the same pods, if it finds
// any.
func (r *rebuilder) rebuild(torn []int) bool {
	limits, spent := slices.Clone(r.limits), 0.0
	r.active = r.active[:0]
	for _, i := range torn {
		n := &r.nodes[i]
		spent += r.Candidates[n.Candidate].Price
		r.use(n.Candidate, -1)
		for _, t := range n.Take {
			if r.count[t.Item] == 0 {
				r.active = append(r.active, t.Item)
			}
			r.count[t.Item] += t.Pods
		}
	}
	r.disturb()
	patterns, ok := r.merge(spent)
	if !ok {
		patterns, ok = r.cover(spent)
	}
	for _, i := range r.active {
		r.count[i] = 0
	}
	if !ok {
		copy(r.limits, limits)
		return false
	}
	var kept []Node
	for i, n := range r.nodes {
		if !slices.Contains(torn, i) {
			kept = append(kept, n)
		}
	}
	r.nodes = append(kept, patterns...)
	return true
}

// evenly is of how many items one is not packed as full as it can be: its pods may
// fit fewer and cheaper nodes when they are divided.
const evenly = 4

// disturb draws how the next cover looks at the torn pods and at candidates.
func (r *rebuilder) disturb() {
	for _, i := range r.active {
		r.values[i] = r.solver.values[i] * (0.7 + 0.6*r.rng.Float64())
		r.portion[i] = r.count[i]
		if r.rng.IntN(evenly) == 0 {
			r.portion[i] = 1 + r.rng.IntN(r.count[i])
		}
	}
	for i := range r.favour {
		r.favour[i] = 1 + 0.4*r.rng.Float64()
		r.rankings[i].known = false
	}
}

// merge finds the cheapest node that takes all pods that are counted, and reports
// whether it costs less than limit.
func (r *rebuilder) merge(limit float64) ([]Node, bool) {
	pods, request := 0, make([]int64, r.dims)
	for _, i := range r.active {
		if r.portion[i] < r.count[i] {
			return nil, false
		}
		pods += r.count[i]
		for d, v := range r.Items[i].Request {
			request[d] += v * int64(r.count[i])
		}
	}
	for i, c := range r.candidates {
		if r.Candidates[c].Price >= limit*(1-1e-9) || r.budget.Spent() {
			break
		}
		if r.budget.Spend(r.dims); !holds(r.Candidates[c].Room, request) || r.allow(c, 1) == 0 {
			continue
		}
		take, _ := r.fillActive(i)
		got := 0
		for _, t := range take {
			got += t.Pods
		}
		if got == pods {
			r.use(c, 1)
			return []Node{{c, 1, slices.Clone(take)}}, true
		}
	}
	return nil, false
}

// cover finds nodes for all pods that are counted, best worth for price first,
// and reports whether they cost less than limit.
func (r *rebuilder) cover(limit float64) ([]Node, bool) {
	var out []Node
	spent := 0.0
	for slices.ContainsFunc(r.active, func(i int) bool { return r.count[i] > 0 }) {
		best, score := Node{Candidate: -1}, 0.0
		for i, c := range r.candidates {
			price := r.Candidates[c].Price
			if spent+price >= limit || r.worthAtMost(i) <= score*price*r.favour[i]*(1+1e-9) || r.allow(c, 1) == 0 {
				continue
			}
			take, worth := r.fillActive(i)
			if worth > score*price*r.favour[i]*(1+1e-9) {
				score = worth / max(price*r.favour[i], 1e-300)
				best = Node{c, 1, slices.Clone(take)}
			}
		}
		if best.Candidate < 0 || r.budget.Spent() {
			return nil, false
		}
		if spent += r.Candidates[best.Candidate].Price; spent >= limit*(1-1e-9) {
			return nil, false
		}
		r.use(best.Candidate, 1)
		for _, t := range best.Take {
			r.count[t.Item] -= t.Pods
		}
		out = append(out, best)
	}
	return out, true
}

// rank returns the order in which the i-th candidate is filled.
func (r *rebuilder) rank(i int) *ranking {
	k := &r.rankings[i]
	if k.known {
		return k
	}
	c := r.candidates[i]
	k.known, k.items, k.space = true, k.items[:0], 0
	for d, v := range r.space[c] {
		k.space += (r.shadow[c][d] + 1e-12) * v
	}
	for _, item := range r.active {
		if !r.Candidates[c].Serves.Has(r.items[item].class) {
			continue
		}
		load := 1e-300
		for d, w := range r.items[item].weight {
			load += (r.shadow[c][d] + 1e-12) * w
		}
		k.items = append(k.items, density{item, r.values[item] / load})
	}
	slices.SortFunc(k.items, byValue)
	r.budget.Spend(len(k.items) * (r.dims + 16))
	return k
}

// worthAtMost returns what no filling of the i-th candidate is worth more than: all
// its room at the highest density.
func (r *rebuilder) worthAtMost(i int) float64 {
	k := r.rank(i)
	for _, it := range k.items {
		r.budget.Spend(1)
		if r.count[it.line] > 0 {
			return it.value * k.space
		}
	}
	return 0
}

// fillActive is fill of the i-th candidate for the torn items alone, through the
// hand that respects every rule.
func (r *rebuilder) fillActive(i int) ([]Portion, float64) {
	k, h := r.rank(i), r.hand
	r.budget.Spend(len(k.items) * r.dims)
	h.begin(r.candidates[i], r.count)
	worth := 0.0
	for _, it := range k.items {
		if left := r.count[it.line]; left > 0 {
			worth += r.values[it.line] * float64(h.load(it.line, min(r.portion[it.line], left)))
		}
	}
	r.take = r.take[:0]
	for _, t := range h.take {
		r.take = append(r.take, Portion{t.Item, h.pods[t.Item]})
	}
	return r.take, worth
}

// tighten makes every node the cheapest of its pool that its pods fit.
func (s *solver) tighten() {
	for i := range s.nodes {
		n := &s.nodes[i]
		before := n.Candidate
		was := &s.Candidates[before]
		items, request := make([]int, 0, len(n.Take)), make([]int64, s.resources)
		for _, t := range n.Take {
			items = append(items, t.Item)
			for r, v := range s.Items[t.Item].Request {
				request[r] += v * int64(t.Pods)
			}
		}
		s.budget.Spend(len(s.Candidates) * s.resources)
		for c := range s.Candidates {
			is := &s.Candidates[c]
			if is.Price < s.Candidates[n.Candidate].Price && is.Pool == was.Pool && holds(is.Room, request) && !uses(is, was) && s.takes(c, items) {
				n.Candidate = c
			}
		}
		if now := n.Candidate; now != before {
			s.use(before, -n.Count)
			s.use(now, n.Count)
		}
	}
}

// uses reports whether a takes more of some limit than b.
func uses(a, b *Candidate) bool {
	return slices.ContainsFunc(a.Uses, func(u Use) bool {
		return u.Amount > 0 && !slices.ContainsFunc(b.Uses, func(o Use) bool { return o.Limit == u.Limit && o.Amount >= u.Amount })
	})
}

// takes reports whether pods of the items may share a node of the candidate, room not
// asked.
func (s *solver) takes(c int, items []int) bool {
	return !slices.ContainsFunc(items, func(i int) bool { return !s.Candidates[c].Serves.Has(s.Items[i].Class) }) &&
		(s.Agree == nil || s.Agree(c, items))
}
