// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"slices"

	"karpenter/solve/work"
)

// searchNodes bounds the exact search of one candidate, in branches.
const searchNodes = 600

// search looks for the most worthy patterns of candidate c by branch and bound.
// It returns those it came upon that are worth more than the price, best last,
// and an upper bound on the worth of any pattern of the candidate.
//
// The bound is the linear relaxation, tightened for the room left at every
// branch, because large pods, which are worth most, rarely come out even and
// leave room that only cheap ones can use. The search stops where the bound is
// no more than the price, which is all a proof needs.
func (p *pricer) search(c int) (found [][]Portion, limit float64) {
	s := &searcher{pricer: p, enough: p.Candidates[c].Price * (1 + negligible/2), candidate: c, choices: p.choices}
	items := make([]choice, 0, len(p.serves[c]))
	for i, l := range p.serves[c] {
		if u := min(p.fits[c][i], p.count[l]); u > 0 && p.values[l] > 0 {
			items = append(items, choice{l, u})
		}
	}
	s.branch(items, p.room[c], p.shadow[c], 0)
	p.choices = s.choices
	return s.found, max(s.most, s.limit)
}

// searchKeeps is how many patterns a search keeps: the last of them are the
// best, as each must beat the one before.
const searchKeeps = 6

// searcher is one branch-and-bound run.
type searcher struct {
	*pricer
	candidate int
	enough    float64 // branches that cannot get above this are not followed
	taken     []Portion
	nodes     int
	choices   []choice // arena of the branches that are open

	found [][]Portion
	most  float64
	limit float64 // highest bound among branches not followed to their end
}

// branch decides how many pods of the most worthy line to take, most first. The
// prices are those of the branch above, to start from.
func (s *searcher) branch(items []choice, room []int64, price []float64, worth float64) {
	if worth > s.most {
		s.most = worth
		if worth > s.enough {
			if len(s.found) == searchKeeps {
				s.found = s.found[1:]
			}
			s.found = append(s.found, slices.Clone(s.taken))
		}
	}
	if len(items) == 0 {
		return
	}
	s.nodes++
	aim := max(s.enough, s.most)
	bound, price := s.bound(items, room, price, aim-worth)
	bound += worth
	if bound <= aim || s.nodes > searchNodes || s.budget.Spent() {
		s.limit = max(s.limit, bound)
		return
	}
	first, used := s.mostWorthy(items, price), len(s.choices)
	it := items[first]
	s.choices = append(append(s.choices, items[:first]...), items[first+1:]...)
	rest, open := s.choices[used:], len(s.choices)
	left := slices.Clone(room)
	for d, v := range s.lines[it.line].request {
		left[d] -= v * int64(it.most)
	}
	for n := it.most; n >= 0; n-- {
		fit := s.fitting(rest, left)
		if n > 0 {
			s.taken = append(s.taken, Portion{it.line, n})
			fit = slices.DeleteFunc(fit, func(o choice) bool { return s.apart(&s.lines[it.line], &s.lines[o.line]) })
		}
		s.branch(fit, left, price, worth+float64(n)*s.values[it.line])
		s.choices = s.choices[:open]
		if n > 0 {
			s.taken = s.taken[:len(s.taken)-1]
			for d, v := range s.lines[it.line].request {
				left[d] += v
			}
		}
	}
	s.choices = s.choices[:used]
}

// bound returns what the lines are worth at most in the room, with the prices
// that say so: those given, if they show that it is no more than enough.
func (s *searcher) bound(items []choice, room []int64, price []float64, enough float64) (float64, []float64) {
	space := s.price[:len(room)]
	for d, v := range room {
		space[d] = float64(v) / s.unit[d]
	}
	s.sack.Reset(space)
	for _, it := range items {
		s.sack.Add(s.values[it.line], float64(it.most), s.lines[it.line].weight)
	}
	s.budget.Spend(2 * len(items) * s.dims)
	if bound := s.sack.Bound(price); bound <= enough {
		return bound, price
	}
	price = make([]float64, len(room))
	bound, steps := s.sack.Relax(price)
	s.budget.Spend(steps * (len(items) + s.dims) * s.dims)
	return bound, price
}

// fitting returns the lines of which the room takes at least one pod. They are good
// as long as the branch is open.
func (s *searcher) fitting(items []choice, room []int64) []choice {
	from := len(s.choices)
	for _, it := range items {
		if n := min(it.most, whole(room, s.lines[it.line].request)); n > 0 {
			s.choices = append(s.choices, choice{it.line, n})
		}
	}
	return s.choices[from:]
}

// mostWorthy returns the index of the line with the highest value for the price
// of what it requests.
func (s *searcher) mostWorthy(items []choice, price []float64) int {
	best, most := 0, 0.0
	for i, it := range items {
		load := 1e-9 * s.values[it.line]
		for d, w := range s.lines[it.line].weight {
			load += price[d] * w
		}
		if v := s.values[it.line] / load; v > most || (v == most && it.line < items[best].line) {
			best, most = i, v
		}
	}
	return best
}

// Fullest returns the most worthy node it finds for each candidate at these
// values of the items, and its worth.
func Fullest(p *Problem, values []float64, budget *work.Budget) ([][]Portion, []float64) {
	s := newSolver(p, budget)
	pr := newPricer(s, s.items)
	copy(pr.values, values)
	for i := range p.Items {
		pr.count[i] = p.Items[i].Count
	}
	takes, worths := make([][]Portion, len(p.Candidates)), make([]float64, len(p.Candidates))
	for c := range p.Candidates {
		takes[c], worths[c] = pr.fullest(c)
	}
	return takes, worths
}

// searched is up to how many lines the best pattern is searched for.
const searched = 32

func (p *pricer) fullest(c int) ([]Portion, float64) {
	take, most := p.fill(c, p.limit(c, 0))
	take = slices.Clone(take)
	if len(p.serves[c]) <= searched {
		found, _ := p.search(c)
		for _, f := range found {
			if w := p.worth(f); w > most && p.agreed(c, f) {
				take, most = f, w
			}
		}
	}
	return take, most
}

// agreed reports whether the labels of the pool let the lines share a node.
func (p *pricer) agreed(c int, take []Portion) bool {
	for i := range take {
		if !p.compatible(c, take[:i], take[i].Item) {
			return false
		}
	}
	return true
}
