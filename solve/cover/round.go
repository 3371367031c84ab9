// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of the dive.
const (
	roundUp = 32   // of the fractions, one in so many is rounded up in one step
	filled  = 0.98 // a fraction is rounded up if pods are left for so much of its worth
)

// few is how many rounds of generation are enough where an optimum is not
// needed: the more rows there are, the more a round costs and the less rounding
// matters.
func (m *master) few() int { return 4 + 200/max(len(m.rows), 1) }

// roughly is how many times as many rounds are enough to find values for a rough cover, and
// how many times fewer while it is rounded.
const roughly = 4

// dive launches the whole part of the master problem's solution and the largest
// fractions, solves again for what is left, and so on. It reports false when the
// pods are worth more than o.Most, and launches nothing then.
func (s *solver) dive(m *master, r *Result, o Options) bool {
	for first := true; m.restart(); first = false {
		if !first && o.Rough {
			m.optimise(m.few()/roughly, greedily)
		} else if !first {
			m.optimise(m.few(), greedily)
		} else if !s.solveFirst(m, r, o) {
			return false
		}
		if !s.buySolution(m) || s.budget.Spent() {
			return true
		}
		m.forget()
	}
	return true
}

// firstShare is the part of the budget that is left in which the values are found;
// the rest is for launching by them.
const firstShare = 0.6

// solveFirst solves for all pods and finds what they are worth. It reports false
// when that is more than o.Most.
func (s *solver) solveFirst(m *master, r *Result, o Options) bool {
	rounds := math.MaxInt
	if o.Rough {
		rounds = roughly * m.few()
		m.priceFew()
	}
	s.within(firstShare, func() { m.optimise(rounds, greedily) })
	if m.total() > o.Most {
		return false
	}
	if o.Prove {
		m.refine()
	}
	r.Columns = m.promising()
	s.value(m)
	return true
}

// buySolution launches the whole nodes of the solution and, of the fractions that
// are left, the largest. It reports whether it launched any.
func (s *solver) buySolution(m *master) bool {
	type use struct {
		pattern
		amount, rest float64
	}
	var uses []use
	for column, amount := range m.program.Used {
		uses = append(uses, use{m.patterns[m.columns[column]], amount, amount})
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.amount, a.amount) })
	bought := false
	for i := range uses {
		if n := math.Floor(uses[i].amount + 1e-6); n > 0 {
			bought = s.buy(m, uses[i].pattern, int(n)) || bought
			uses[i].rest -= n
		}
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.rest, a.rest) })
	for _, u := range uses[:(len(uses)+roundUp-1)/roundUp] {
		if bought && (u.rest < 0.5 || !m.fills(u.pattern)) {
			continue
		}
		bought = s.buy(m, u.pattern, 1) || bought
	}
	return bought
}

// fills reports whether pods are left for most of what the pattern takes.
func (m *master) fills(p pattern) bool {
	m.recount()
	there, all := 0.0, 0.0
	for _, t := range p.take {
		all += m.values[t.Item] * float64(t.Pods)
		there += m.values[t.Item] * float64(min(t.Pods, m.count[t.Item]))
	}
	return there >= filled*all
}

// buy launches count nodes of the pattern, as far as pods and limits allow. When
// the pods left no longer fill one node it takes those there are.
func (s *solver) buy(m *master, p pattern, count int) bool {
	bought := false
	for count > 0 {
		s.hand.begin(p.candidate, s.left)
		mixed := false
		for _, t := range p.take {
			l := &m.pricer.lines[t.Item]
			n := t.Pods - s.hand.loadLine(l, t.Pods)
			if n > 0 && len(m.rows[m.rowOf[t.Item]]) > 1 {
				m.loadSimilar(t.Item, n)
				mixed = true
			}
			mixed = mixed || len(l.members) > 1
		}
		if len(s.hand.take) == 0 {
			break
		}
		if mixed {
			for _, l := range m.byDensity(p.candidate) {
				s.hand.topUp(&m.pricer.lines[l])
			}
		}
		n := s.launch(count)
		if n == 0 {
			break
		}
		count, bought = count-n, true
	}
	return bought
}

// loadSimilar puts up to n pods on the node of lines of the same row, those most like
// the line first.
func (m *master) loadSimilar(l, n int) {
	lines := m.rows[m.rowOf[l]]
	at := slices.Index(lines, l)
	for off := 1; n > 0 && (at >= off || at+off < len(lines)); off++ {
		for _, i := range []int{at - off, at + off} {
			if i >= 0 && i < len(lines) && n > 0 {
				n -= m.hand.loadLine(&m.pricer.lines[lines[i]], n)
			}
		}
	}
	m.budget.Spend(16 * len(lines))
}

// byDensity returns the lines with pods left that candidate c serves, those first
// whose pods are worth most for the price of what they request.
func (m *master) byDensity(c int) []int {
	items := m.dense[:0]
	for _, l := range m.serves[c] {
		if !m.hand.has(&m.pricer.lines[l]) {
			continue
		}
		load := 1e-300
		for d, w := range m.pricer.lines[l].weight {
			load += (m.shadow[c][d] + 1e-12) * w
		}
		items = append(items, density{l, m.values[l] / load})
	}
	m.budget.Spend(len(items) * (m.dims + 32))
	m.dense = items
	slices.SortFunc(items, byValue)
	out := make([]int, len(items))
	for i, it := range items {
		out[i] = it.line
	}
	return out
}

// value sets what a pod of each item is worth, by the values that prove most and by those
// of the master problem. Items of one line are worth what the line is, in proportion to what
// they request at the mean shadow prices of the solution.
func (s *solver) value(m *master) {
	var prices []float64
	for i := range m.pricer.lines {
		l := &m.pricer.lines[i]
		mean := 0.0
		if len(l.members) > 1 {
			if prices == nil {
				prices = m.meanPrices()
			}
			mean = dot(prices, l.weight)
		}
		for _, item := range l.members {
			part := 1.0
			if mean > 0 {
				part = dot(prices, s.items[item].weight) / mean
			}
			s.values[item], s.master[item] = m.best[i]*part, m.values[i]*part
		}
	}
}

// meanPrices returns the shadow prices over the nodes of the program's solution.
func (m *master) meanPrices() []float64 {
	out := make([]float64, m.dims)
	m.revalue(m.values)
	for column, amount := range m.program.Used {
		c := m.patterns[m.columns[column]].candidate
		m.limit(c, 0)
		for d, p := range m.shadow[c] {
			out[d] += amount * p
		}
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// coverAsFirst covers all items again, as the greedy cover did, and keeps the cover that
// leaves fewer pods or else costs less.
func (s *solver) coverAsFirst(m *master) {
	if len(m.first) == 0 {
		return
	}
	nodes, left, limits, cost := s.nodes, s.left, s.limits, s.cost()
	s.start()
	for _, f := range m.first {
		s.buy(m, f.pattern, f.count)
	}
	s.coverRest()
	fewer := cmp.Compare(total(s.left), total(left))
	if fewer > 0 || fewer == 0 && s.cost() >= cost {
		s.nodes, s.left, s.limits = nodes, left, limits
	}
}

// coverRest finds nodes for what the dive left: pods of items larger than their
// row, and all pods when the budget ended early. For the item whose pods cost
// most by themselves it launches the candidate that is cheapest per pod, filled up
// with others.
func (s *solver) coverRest() {
	var open []int
	for i, n := range s.left {
		if n > 0 {
			open = append(open, i)
		}
	}
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(s.size(b), s.size(a)) })
	for at, item := range open {
		for s.left[item] > 0 && s.buyFor(item, open[at+1:]) {
		}
	}
}

// restTries is how many other items are looked at to fill up a node.
const restTries = 64

// buyFor launches nodes of the candidate that is cheapest per pod of the item,
// filled up with the others. It reports false when no candidate takes one.
func (s *solver) buyFor(item int, others []int) bool {
	best, price := -1, math.Inf(1)
	for c := range s.Candidates {
		if !s.Candidates[c].Serves.Has(s.Items[item].Class) || s.allow(c, 1) == 0 {
			continue
		}
		n := min(whole(s.room[c], s.items[item].request), s.left[item])
		if most := s.Items[item].Most; most > 0 {
			n = min(n, most)
		}
		if p := s.Candidates[c].Price / float64(n); n > 0 && p < price {
			best, price = c, p
		}
	}
	s.budget.Spend(len(s.Candidates) * s.dims)
	if best < 0 {
		return false
	}
	s.hand.begin(best, s.left)
	s.hand.load(item, s.left[item])
	tries := restTries
	for _, o := range others {
		if s.left[o] == 0 || !s.Candidates[best].Serves.Has(s.Items[o].Class) {
			continue
		}
		s.hand.load(o, s.left[o])
		if tries--; tries == 0 {
			break
		}
	}
	return s.launch(s.left[item]) > 0
}
