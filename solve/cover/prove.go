package cover

import (
	"math"
	"slices"

	"karpenter/solve/work"
)

// Bounds of stabilise.
const (
	pullToBest   = 0.6  // weight of the best values so far
	closeEnough  = 5e-3 // how close the values and what they prove need to come
	idleRounds   = 6    // rounds that bring little, before giving up
	exactShare   = 0.25 // of the budget that is left
	searchedRows = 1200 // rows of all its rounds together
)

// stabilise finds patterns of negative reduced cost that the greedy knapsack
// misses. Each round searches every candidate exactly for patterns that are worth
// more than their price, and solves again. The search looks at values between the
// best so far and the present ones, which swing less than the latter (Wentges
// 1997). Where that finds nothing to add it looks closer to the present ones.
// The values that prove most are kept: divided by the largest ratio of worth to
// price, they are feasible for the dual (Farley 1990).
func (m *master) stabilise() {
	all := m.budget
	m.budget = all.Part(exactShare)
	defer func() { all.Return(m.budget); m.budget = all }()
	best := make([]float64, len(m.values))
	bound, ratio, pull, idle := 0.0, 1.0, 0.0, 0
	for rounds := 3 + searchedRows/max(len(m.count), 1); rounds > 0 && idle < idleRounds && m.total() > bound*(1+closeEnough) && !m.budget.Spent(); rounds-- {
		present := slices.Clone(m.values)
		for row, v := range best {
			m.values[row] = pull*v/ratio + (1-pull)*present[row]
		}
		r, found := m.searchAll(present)
		idle++
		if b := m.total() / r; b > bound {
			if b > bound*(1+closeEnough/10) {
				idle = 0
			}
			bound, ratio = b, r
			copy(best, m.values)
		}
		copy(m.values, present)
		if !found {
			pull /= 2
			continue
		}
		before := m.total()
		m.optimise(m.few())
		if m.total() < before*(1-closeEnough/10) {
			idle = 0
		}
		pull = pullToBest
	}
	if bound > 0 {
		for row, v := range best {
			m.values[row] = v / ratio
		}
	}
}

// searchAll searches every candidate exactly and adds the patterns it finds that
// are worth more than their price at the present values. It returns the largest
// ratio of worth to price at the values of m, and whether it added any.
func (m *master) searchAll(present []float64) (ratio float64, found bool) {
	ratio = 1
	for c := range m.Candidates {
		price := m.Candidates[c].Price
		limit := m.limit(c, price)
		if limit <= price || m.allow(c, 1) == 0 {
			continue
		}
		var takes [][]Portion
		if !m.budget.Spent() {
			takes, limit = m.search(c)
		}
		ratio = max(ratio, limit/max(price, 1e-300))
		for _, take := range takes {
			worth := 0.0
			for _, t := range take {
				worth += present[t.Item] * float64(t.Pods)
			}
			if worth > price*(1+negligible/4) && m.agreed(c, take) {
				m.patterns = append(m.patterns, pattern{c, slices.Clone(take)})
				m.offer(len(m.patterns) - 1)
				found = true
			}
		}
	}
	return ratio, found
}

// Prove lowers the values of items, as little as it can, until no node of any
// candidate can be worth more than its price, whatever pods share it. Then no
// cover of the items costs less than their values add up to.
//
// For each candidate it bounds the worth of the best node by the linear
// relaxation, and where that is too much by branch and bound. What is worth too
// much by a factor has its items divided by it (Farley 1990), item by item: an
// item is divided by the largest factor among the candidates that serve it.
func Prove(p *Problem, values []float64, budget *work.Budget) []float64 {
	s := newSolver(p, budget)
	pr := newPricer(s, s.items)
	for i := range p.Items {
		pr.count[i] = p.Items[i].Count
	}
	copy(pr.values, values)
	factor := slices.Repeat([]float64{1}, len(values))
	for c := range s.Candidates {
		price := s.Candidates[c].Price - p.Epsilon
		worth := pr.limit(c, price)
		if worth <= price {
			continue
		}
		if !budget.Spent() {
			_, worth = pr.search(c)
		}
		if worth <= price {
			continue
		}
		f := math.Inf(1)
		if price > 0 {
			f = worth / price
		}
		for _, i := range pr.serves[c] {
			factor[i] = max(factor[i], f)
		}
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v / factor[i]
	}
	return out
}
