// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/solve/fit"
)

// rivals are the candidates that no other dominates, as far as they are known. A candidate is
// compared only with those that could dominate it: with a hundred pools, few can.
type rivals struct {
	*market
	all     []candidate
	cohorts []*cohort
	of      []int   // by candidate: its cohort
	taking  [][]int // by class: the cohorts that serve it
}

// cohort is the candidates that serve the same classes.
type cohort struct {
	serves fit.Bits
	wider  []*cohort            // those that serve these classes, and maybe more
	open   []*candidate         // the rivals that can dominate candidates of any pool
	own    map[int][]*candidate // by pool: those that can dominate only candidates of their own
}

func (m *market) rivalsOf(all []candidate) *rivals {
	r := &rivals{market: m, all: all, of: make([]int, len(all)), taking: make([][]int, len(m.classes))}
	known := map[string]int{}
	for i := range all {
		key := all[i].serves.Key()
		at, ok := known[key]
		if !ok {
			at = len(r.cohorts)
			known[key] = at
			r.cohorts = append(r.cohorts, &cohort{serves: all[i].serves, own: map[int][]*candidate{}})
			for class := range all[i].serves.All() {
				r.taking[class] = append(r.taking[class], at)
			}
		}
		r.of[i] = at
	}
	for _, g := range r.cohorts {
		for _, at := range r.fewestTaking(g.serves) {
			m.budget.Spend(len(g.serves))
			if o := r.cohorts[at]; o.serves.Contains(g.serves) {
				g.wider = append(g.wider, o)
			}
		}
	}
	return r
}

// fewestTaking returns the cohorts that serve the class which fewest serve.
func (r *rivals) fewestTaking(classes fit.Bits) []int {
	var least []int
	for class := range classes.All() {
		if some := r.taking[class]; least == nil || len(some) < len(least) {
			least = some
		}
	}
	return least
}

// add adds a candidate that is no cheaper than those before. It reports false if one of
// these dominates it.
func (r *rivals) add(i int) bool {
	c, g := &r.all[i], r.cohorts[r.of[i]]
	for _, o := range g.wider {
		for _, some := range [][]*candidate{o.open, o.own[c.pool]} {
			r.budget.Spend(1 + len(some))
			if slices.ContainsFunc(some, func(a *candidate) bool { return r.dominates(a, c) }) {
				return false
			}
		}
	}
	if r.picky[c.pool] || len(r.limiting(c)) > 0 {
		g.own[c.pool] = append(g.own[c.pool], c)
	} else {
		g.open = append(g.open, c)
	}
	return true
}

// dominates reports whether a, which is no more expensive than b, can stand in for b
// in every pattern: it has the room, serves as many classes, and takes no more
// of a pool's limits.
func (m *market) dominates(a, b *candidate) bool {
	for i, v := range a.room {
		if b.room[i] > v {
			return false
		}
	}
	if !a.serves.Contains(b.serves) {
		return false
	}
	if a.pool != b.pool {
		return len(m.limiting(a)) == 0 && !m.picky[a.pool]
	}
	return !slices.ContainsFunc(m.limiting(a), func(r int) bool { return a.capacity.At(r) > b.capacity.At(r) })
}

// limiting returns the resources that limits of its pool bound the candidate's nodes by. A
// proof knows only whether they allow one.
func (m *market) limiting(c *candidate) []int {
	if m.proving && !m.unaffordable(*c) {
		return nil
	}
	return m.limits.pools[c.pool].resources
}
