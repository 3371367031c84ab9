// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"slices"

	"karpenter/solve/work"
)

// Prove lowers the values of items, as little as it can, until no node of any
// candidate can be worth more than its price, whatever pods share it. Then no
// cover of the items costs less than their values add up to.
//
// The argument, candidate by candidate: let π be its shadow prices and w what
// they say its best node is worth at most. If w exceeds the price by a factor f,
// then π/f shows that no node is worth more than the price once the value of
// every item is at most max(v, π·request)/f. So items that the best node would
// not take, because they are worth less than what they request, keep their value.
// Where branch and bound knows of a smaller w, dividing all values may cost less
// (Farley 1990).
func Prove(p *Problem, values []float64, budget *work.Budget) []float64 {
	pr := newItemPricer(p, budget)
	lines, out := pr.lines, slices.Clone(values)
	for l := range lines {
		for _, i := range lines[l].members {
			pr.values[l] = max(pr.values[l], values[i])
		}
	}
	for c := range p.Candidates {
		price := p.Candidates[c].Price - p.Epsilon
		limit := pr.limit(c, price)
		if limit <= price {
			continue
		}
		relaxed := pr.lowered(c, price/limit, pr.shadow[c])
		if !budget.Spent() {
			if _, exact := pr.search(c); exact < limit {
				if divided := pr.lowered(c, min(price/exact, 1), nil); pr.gain(c, divided) > pr.gain(c, relaxed) {
					relaxed = divided
				}
			}
		}
		for i, l := range pr.serves[c] {
			for _, item := range lines[l].members {
				out[item] = min(out[item], relaxed[i])
			}
		}
	}
	return out
}

// newItemPricer returns a pricer of all items, of which equal ones share a line.
func newItemPricer(p *Problem, budget *work.Budget) *pricer {
	s := newSolver(p, budget)
	all := make([]int, len(p.Items))
	for i := range all {
		all[i] = i
	}
	var lines []line
	for _, set := range s.equal(all) {
		lines = append(lines, s.row(set))
	}
	pr := newPricer(s, lines)
	for l := range lines {
		for _, i := range lines[l].members {
			pr.count[l] += p.Items[i].Count
		}
	}
	return pr
}

// lowered returns the values of the lines that candidate c serves, multiplied by a
// factor below 1: all of them or, with shadow prices, those that exceed what the
// request of their pods then costs.
func (p *pricer) lowered(c int, factor float64, shadow []float64) []float64 {
	out := make([]float64, len(p.serves[c]))
	for i, l := range p.serves[c] {
		v := p.values[l]
		out[i] = max(v, dot(shadow, p.lines[l].weight)) * factor
		out[i] = min(out[i], v)
	}
	return out
}

// gain is what all pods of the lines that candidate c serves are worth.
func (p *pricer) gain(c int, values []float64) float64 {
	sum := 0.0
	for i, l := range p.serves[c] {
		sum += values[i] * float64(p.count[l])
	}
	return sum
}
