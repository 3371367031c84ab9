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
//
// Then it goes from there towards other values, which are too high, and lowers them in the
// same way, as long as that proves more; nil = there are none.
func Prove(p *Problem, values, towards []float64, budget *work.Budget) []float64 {
	pr := newItemPricer(p, budget)
	pr.values = pr.highest(values)
	pr.lowerAll()
	if towards != nil {
		pr.within(raiseShare, func() { pr.raise(pr.highest(towards)) })
	}
	out := slices.Clone(values)
	for l, v := range pr.values {
		for _, i := range pr.lines[l].members {
			out[i] = v
		}
	}
	return out
}

// highest returns by line the highest of the values of its items.
func (p *pricer) highest(values []float64) []float64 {
	out := make([]float64, len(p.lines))
	for l := range p.lines {
		for _, i := range p.lines[l].members {
			out[l] = max(out[l], values[i])
		}
	}
	return out
}

// Bounds of raise.
const (
	raiseShare = 0.05 // of the budget that is left
	raiseFirst = 0.5  // of the way to the other values
	raiseLast  = 0.1
	raiseGain  = 1e-3 // less is not worth another step as long
)

// raise goes from values that prove something towards others, and lowers those, as long as
// that proves more.
func (p *pricer) raise(towards []float64) {
	best, most := slices.Clone(p.values), p.total()
	for by := raiseFirst; by > raiseLast && !p.budget.Spent(); {
		for l, v := range best {
			p.values[l] = v + by*(towards[l]-v)
		}
		p.revalue(p.values)
		p.lowerAll()
		before, sum := most, p.total()
		if sum > most {
			best, most = slices.Clone(p.values), sum
		}
		if most < before*(1+raiseGain) || most == before {
			by /= 2
		}
	}
	copy(p.values, best)
}

// lowerAll lowers the values of the lines as Prove does. What one candidate lowers is lower
// for those that follow.
func (p *pricer) lowerAll() {
	for c := range p.Candidates {
		price := p.Candidates[c].Price - p.Epsilon
		limit := p.limit(c, price)
		if limit <= price {
			continue
		}
		lowered := p.lowered(c, price/limit, p.shadow[c])
		if !p.budget.Spent() {
			if _, exact := p.search(c); exact < limit {
				if divided := p.lowered(c, min(price/exact, 1), nil); p.gain(c, divided) > p.gain(c, lowered) {
					lowered = divided
				}
			}
		}
		for i, l := range p.serves[c] {
			p.values[l] = lowered[i]
		}
		p.revalue(p.values)
	}
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
		sum += values[i] * p.wanted(l)
	}
	return sum
}
