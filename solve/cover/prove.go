package cover

import (
	"math"
	"slices"

	"karpenter/solve/work"
)

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
