// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"math"
	"slices"
)

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
	request []float64   // by line and dimension
	among   []int       // candidates
	parts   [][]float64 // of each of them: of its price, by dimension and then, if nodes take only so many pods of some line, by line as in serves
	divisor []float64   // see roomIn
	loads   []float64   // as parts
	price   []float64   // as serves of all of them: what a pod costs
	least   []float64   // by line
	floor   []float64   // by line: what a pod costs at least on the candidates that were left out
	whole   []float64   // by line: sum of what goes anywhere
	best    []float64   // by line: the values that prove most
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
	enoughExcess = 8   // times the excess from which on no part goes
	nearStart    = 0.3 // excess over the least price, as a fraction of it, from which on a candidate is left out
	nearEnd      = 0.1 // the same when the values are found
)

// ascend finds the best values, and leaves the shadow prices of all candidates.
func (p *pricer) ascend() *ascent {
	a := p.newAscent()
	before, steps := 0.0, ascentLeast
	if p.budget.Spent() { // most candidates are left out at once
		a.climb(1, softFirst, softFirst)
		a.setShadows()
		a = a.near(nearStart)
	}
	for step := 0; step < ascentSteps; step += steps {
		most := a.climb(steps, softAt(step), softAt(step+steps))
		a.setShadows()
		if p.budget.Spent() || most < before*(1+ascentGain) {
			break
		}
		before = most
		a = a.near(nearStart)
	}
	return a
}

// softAt is how soft the ascent is at the step.
func softAt(step int) float64 {
	return softFirst * math.Pow(softLast/softFirst, float64(step)/ascentSteps)
}

// climb takes steps that become less soft, and returns what the best values prove.
func (a *ascent) climb(steps int, from, to float64) float64 {
	most := a.totalOf(a.best)
	for step := range steps {
		a.cost()
		sum := 0.0
		for l, v := range a.least {
			if !math.IsInf(v, 1) {
				sum += v * a.wanted(l)
			}
		}
		if sum > most {
			most = sum
			for l, v := range a.least {
				if a.best[l] = v; math.IsInf(v, 1) {
					a.best[l] = 0
				}
			}
		}
		a.divide(from * math.Pow(to/from, float64(step)/float64(steps)))
	}
	return most
}

// start returns what the ascent has found, which later steps do not change.
func (a *ascent) start() *Start {
	return &Start{among: a.among, parts: cloneAll(a.parts), floor: a.floor, best: slices.Clone(a.best), shadow: slices.Concat(a.shadow...)}
}

// resume returns an ascent that has found this already.
func (p *pricer) resume(s *Start) *ascent {
	a := p.blank()
	a.among, a.parts, a.floor = s.among, cloneAll(s.parts), s.floor
	copy(a.best, s.best)
	for c, shadow := range p.shadow {
		copy(shadow, s.shadow[c*p.dims:])
	}
	a.reserve()
	p.budget.Spend(len(s.shadow) + len(a.price))
	return a
}

func cloneAll(parts [][]float64) [][]float64 {
	out := make([][]float64, len(parts))
	for k := range parts {
		out[k] = slices.Clone(parts[k])
	}
	return out
}

// setShadows sets the shadow prices of the candidates to what the parts say.
func (a *ascent) setShadows() {
	for k, c := range a.among {
		for d, space := range a.space[c] {
			if a.shadow[c][d] = 0; space > 0 {
				a.shadow[c][d] = a.parts[k][d] * a.Candidates[c].Price / space
			}
		}
	}
}

// blank returns an ascent without candidates.
func (p *pricer) blank() *ascent {
	a := &ascent{pricer: p, divisor: make([]float64, p.dims), least: make([]float64, len(p.lines)), whole: make([]float64, len(p.lines)),
		floor: slices.Repeat([]float64{math.Inf(1)}, len(p.lines)), best: make([]float64, len(p.lines))}
	for i := range p.lines {
		for _, v := range p.lines[i].request {
			a.request = append(a.request, float64(v))
		}
	}
	return a
}

// reserve makes room for the loads and prices of the candidates.
func (a *ascent) reserve() {
	longest, all := 0, 0
	for k, c := range a.among {
		longest, all = max(longest, len(a.parts[k])), all+len(a.serves[c])
	}
	a.loads, a.price = make([]float64, longest), make([]float64, all)
}

func (p *pricer) newAscent() *ascent {
	a := p.blank()
	limited := slices.ContainsFunc(p.lines, func(l line) bool { return l.most > 0 })
	for c := range p.Candidates {
		serves := p.serves[c]
		parts, sum := make([]float64, p.dims, p.dims+len(serves)), 0.0
		for d := range parts {
			if p.room[c][d] > 0 {
				parts[d] = 1
				sum++
			}
		}
		if limited {
			parts = parts[:cap(parts)]
			for i, l := range serves {
				if p.lines[l].most > 0 {
					parts[p.dims+i] = firstPart
					sum += firstPart
				}
			}
		}
		for d := range parts {
			parts[d] /= sum
		}
		a.among, a.parts = append(a.among, c), append(a.parts, parts)
		p.budget.Spend(4 * len(serves) * (p.dims + 1))
	}
	a.reserve()
	return a
}

// roomIn returns the room of candidate c, where none is left as 1: none of its lines
// requests any there. It is good until the next call.
func (a *ascent) roomIn(c int) []float64 {
	for d, v := range a.room[c] {
		a.divisor[d] = float64(max(v, 1))
	}
	return a.divisor
}

// near returns the ascent without the candidates on which no pod costs close to the least:
// what it costs there stays as it is.
func (a *ascent) near(excess float64) *ascent {
	a.cost()
	out := *a
	out.among, out.parts, out.floor = nil, nil, slices.Clone(a.floor)
	size, at := 0, 0
	for k, c := range a.among {
		serves := a.serves[c]
		price := a.price[at : at+len(serves)]
		at += len(price)
		if a.isNear(serves, price, excess) {
			out.among, out.parts = append(out.among, c), append(out.parts, a.parts[k])
			size += len(price)
			continue
		}
		for i, l := range serves {
			out.floor[l] = min(out.floor[l], price[i])
		}
	}
	out.price = a.price[:size]
	a.budget.Spend(2 * at)
	return &out
}

// isNear reports whether a pod of one of the lines costs close to the least, at these prices.
func (a *ascent) isNear(lines []int, prices []float64, excess float64) bool {
	for i, l := range lines {
		if a.count[l] > 0 && prices[i] <= a.least[l]*(1+excess) {
			return true
		}
	}
	return false
}

// cost finds what a pod of each line costs on each candidate, and at least.
func (a *ascent) cost() {
	copy(a.least, a.floor)
	n, at := a.dims, 0
	for k, c := range a.among {
		price, parts, room := max(a.Candidates[c].Price-a.Epsilon, 0), a.parts[k], a.roomIn(c)
		byLine := parts[n:]
		for i, l := range a.serves[c] {
			sum := 0.0
			if len(byLine) > 0 && byLine[i] > 0 {
				sum = byLine[i] * (1 / float64(a.fits[c][i]))
			}
			for d, v := range a.request[l*n : (l+1)*n] {
				sum += parts[d] * (v / room[d])
			}
			sum *= price
			if a.price[at] = sum; sum < a.least[l] {
				a.least[l] = sum
			}
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
	for _, c := range a.among {
		for _, l := range a.serves[c] {
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
	for k, c := range a.among {
		serves := a.serves[c]
		parts, loads, room := a.parts[k], a.loads[:len(a.parts[k])], a.roomIn(c)
		clear(loads)
		byLine := parts[n:]
		for i, l := range serves {
			if a.price[at] > 0 {
				pods := a.price[at] / a.whole[l] * a.wanted(l)
				for d, v := range a.request[l*n : (l+1)*n] {
					loads[d] += pods * (v / room[d])
				}
				if len(byLine) > 0 && byLine[i] > 0 {
					loads[n+i] = pods * (1 / float64(a.fits[c][i]))
				}
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
