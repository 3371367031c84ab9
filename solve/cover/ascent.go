// SPDX-License-Identifier: Apache-2.0

package cover

import "math"

// ascent looks for values of the lines that prove much before any pattern is known,
// by the dual of the program in which nodes are launched and filled in fractions.
//
// A candidate divides its price among its dimensions, and among the lines of which
// a node takes only so many pods. A pod is worth what it takes of all these where
// that costs least, so no node is worth more than its price, however the price is
// divided. What is in demand gets a larger part of the price, over and over. Pods
// go, in parts, to all candidates where they cost little more than the least; else
// all of them would change sides at once.
type ascent struct {
	*pricer
	count  []int
	shares [][]float64 // by candidate, then as in serves: what a pod takes of the room in each dimension, and of what a node takes of its line
	parts  [][]float64 // by candidate: of its price, by dimension and then by line as in serves
	loads  []float64   // as parts
	price  []float64   // as serves of all candidates: what a pod costs
	least  []float64   // by line
	whole  []float64   // by line: sum of what goes anywhere
}

// Bounds of the ascent.
const (
	ascentSteps  = 60
	ascentLeast  = 12    // even when no budget is left
	ascentGain   = 2e-3  // less in so many steps is not worth as many more
	softFirst    = 0.1   // excess over the least price, as a fraction of it, at which pods go in parts smaller by e
	softLast     = 0.003 // the same in the end
	firstPart    = 1e-2  // of lines by themselves
	leastPart    = 1e-9
	enoughExcess = 8 // times the excess from which on no part goes
)

// ascend returns the best values found, and leaves the shadow prices of all
// candidates.
func (p *pricer) ascend(count []int) []float64 {
	a := p.newAscent(count)
	best, most, before := make([]float64, len(p.lines)), 0.0, 0.0
	for step := range ascentSteps {
		a.cost()
		sum := 0.0
		for l, v := range a.least {
			if !math.IsInf(v, 1) {
				sum += v * float64(count[l])
			}
		}
		if sum > most {
			most = sum
			for l, v := range a.least {
				if best[l] = v; math.IsInf(v, 1) {
					best[l] = 0
				}
			}
		}
		if step%ascentLeast == ascentLeast-1 {
			if p.budget.Spent() || most < before*(1+ascentGain) {
				break
			}
			before = most
		}
		a.divide(softFirst * math.Pow(softLast/softFirst, float64(step)/ascentSteps))
	}
	for c, parts := range a.parts {
		for d, space := range p.space[c] {
			if p.shadow[c][d] = 0; space > 0 {
				p.shadow[c][d] = parts[d] * p.Candidates[c].Price / space
			}
		}
	}
	return best
}

func (p *pricer) newAscent(count []int) *ascent {
	a := &ascent{pricer: p, count: count, least: make([]float64, len(p.lines)), whole: make([]float64, len(p.lines))}
	longest, all := 0, 0
	for c := range p.Candidates {
		serves := p.serves[c]
		longest, all = max(longest, p.dims+len(serves)), all+len(serves)
		shares, parts := make([]float64, 0, len(serves)*(p.dims+1)), make([]float64, p.dims+len(serves))
		sum := 0.0
		for d := range p.dims {
			if p.room[c][d] > 0 {
				parts[d] = 1
				sum++
			}
		}
		for i, l := range serves {
			for d, v := range p.lines[l].request {
				share := 0.0
				if v > 0 {
					share = float64(v) / float64(p.room[c][d])
				}
				shares = append(shares, share)
			}
			alone := 0.0
			if p.lines[l].most > 0 {
				alone = 1 / float64(p.fits[c][i])
				parts[p.dims+i] = firstPart
				sum += firstPart
			}
			shares = append(shares, alone)
		}
		for d := range parts {
			parts[d] /= sum
		}
		a.shares, a.parts = append(a.shares, shares), append(a.parts, parts)
		p.budget.Spend(4 * len(shares))
	}
	a.loads, a.price = make([]float64, longest), make([]float64, all)
	return a
}

// cost finds what a pod of each line costs on each candidate, and at least.
func (a *ascent) cost() {
	for l := range a.least {
		a.least[l] = math.Inf(1)
	}
	n, at := a.dims, 0
	for c, serves := range a.serves {
		price, parts := a.Candidates[c].Price-a.Epsilon, a.parts[c]
		for i, l := range serves {
			shares := a.shares[c][i*(n+1) : (i+1)*(n+1)]
			sum := parts[n+i] * shares[n]
			for d := range n {
				sum += parts[d] * shares[d]
			}
			sum *= max(price, 0)
			a.price[at] = sum
			a.least[l] = min(a.least[l], sum)
			at++
		}
	}
	a.budget.Spend(len(a.price) * (n + 2))
}

// divide has pods go where they cost little, and changes the parts by what that
// loads.
func (a *ascent) divide(soft float64) {
	n, at := a.dims, 0
	clear(a.whole)
	for _, serves := range a.serves {
		for _, l := range serves {
			weight, least := 0.0, a.least[l]
			if excess := a.price[at] - least; excess <= enoughExcess*soft*least {
				weight = 1
				if excess > 0 {
					weight = math.Exp(-excess / (soft * least))
				}
			}
			a.price[at] = weight
			a.whole[l] += weight
			at++
		}
	}
	at = 0
	for c, serves := range a.serves {
		parts, loads := a.parts[c], a.loads[:n+len(serves)]
		clear(loads)
		for i, l := range serves {
			if a.price[at] > 0 {
				pods := a.price[at] / a.whole[l] * float64(a.count[l])
				shares := a.shares[c][i*(n+1) : (i+1)*(n+1)]
				for d := range n {
					loads[d] += pods * shares[d]
				}
				loads[n+i] = pods * shares[n]
			}
			at++
		}
		a.shift(parts, loads)
	}
	a.budget.Spend(len(a.price) * (n + 8))
}

// shift makes the parts of what is loaded more larger.
func (a *ascent) shift(parts, loads []float64) {
	mean := 0.0
	for d, part := range parts {
		mean += part * loads[d]
	}
	if mean <= 0 {
		return
	}
	sum := 0.0
	for d, part := range parts {
		if part > 0 {
			parts[d] = max(part*math.Sqrt(max(loads[d]/mean, 1e-6)), leastPart)
			sum += parts[d]
		}
	}
	for d := range parts {
		parts[d] /= sum
	}
}
