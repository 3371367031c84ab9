// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"math"
	"slices"

	"karpenter/solve/lp"
)

// pricer looks for the pattern of a candidate that is worth most at the present
// values of some lines.
type pricer struct {
	*solver
	lines  []line
	count  []int     // pods wanted, by line
	values []float64 // of one pod, by line

	serves [][]int     // by candidate: the lines it takes at least one pod of
	fits   [][]int     // by candidate: how many pods of each of serves fit alone
	shadow [][]float64 // by candidate: its shadow prices when they were last computed
	ceilings

	sack    lp.Knapsack
	price   []float64
	free    []int64
	dense   []density
	choices []choice
	take    []Portion
	shared  []int
}

// choice is a line with how many of its pods the room could take at most.
type choice struct{ line, most int }

// negligible is which excess of worth over price is not worth a pattern.
const negligible = 1e-3

// newPricer returns a pricer of the lines. Values and counts are zero.
func newPricer(s *solver, lines []line) *pricer {
	p := &pricer{
		solver: s, lines: lines, count: make([]int, len(lines)), values: make([]float64, len(lines)),
		serves: make([][]int, len(s.Candidates)), fits: make([][]int, len(s.Candidates)), shadow: make([][]float64, len(s.Candidates)),
		price: make([]float64, s.dims), free: make([]int64, s.dims), ceilings: newCeilings(len(s.Candidates), len(lines)),
	}
	shadows := make([]float64, len(s.Candidates)*s.dims)
	var serves, fits []int // of many candidates
	for c := range s.Candidates {
		p.shadow[c] = shadows[c*s.dims : (c+1)*s.dims : (c+1)*s.dims]
		if cap(serves)-len(serves) < len(lines) {
			size := len(lines) * min(len(s.Candidates)-c, candidatesAtOnce)
			serves, fits = make([]int, 0, size), make([]int, 0, size)
		}
		from := len(serves)
		for i := range lines {
			if !s.Candidates[c].Serves.Has(lines[i].class) {
				continue
			}
			n := whole(s.room[c], lines[i].request)
			if lines[i].most > 0 {
				n = min(n, lines[i].most)
			}
			if n > 0 {
				serves, fits = append(serves, i), append(fits, n)
			}
		}
		p.serves[c], p.fits[c] = serves[from:len(serves):len(serves)], fits[from:len(fits):len(fits)]
		s.budget.Spend(len(lines) * s.dims)
	}
	return p
}

// candidatesAtOnce is for how many candidates memory is taken at once.
const candidatesAtOnce = 32

// ceilings are upper bounds on what the room of each candidate is worth, which follow
// the values of the lines: no room gains more than the line that gains most.
type ceilings struct {
	valued []float64 // values of the lines when growth was last computed
	growth float64   // product of the largest gains of a line so far
	most   []float64 // by candidate, when growth was as in since
	since  []float64
}

func newCeilings(candidates, lines int) ceilings {
	return ceilings{
		valued: make([]float64, lines), growth: 1,
		most: slices.Repeat([]float64{math.Inf(1)}, candidates), since: slices.Repeat([]float64{1}, candidates),
	}
}

// revalue tells the ceilings that the values of the lines have changed.
func (h *ceilings) revalue(values []float64) {
	gain := 1.0
	for l, v := range values {
		if before := h.valued[l]; v > before*gain {
			gain = v / before // infinite = it was worth nothing
		}
	}
	if h.growth *= gain; math.IsInf(h.growth, 1) {
		h.growth = 1
		for c := range h.most {
			h.most[c] = math.Inf(1)
		}
	}
	copy(h.valued, values)
}

// lower notes what the room of candidate c is worth at most at the values of the last revalue.
func (h *ceilings) lower(c int, limit float64) { h.most[c], h.since[c] = limit, h.growth }

// of returns what the room of candidate c is worth at most.
func (h *ceilings) of(c int) float64 { return h.most[c] * (h.growth / h.since[c]) }

// limit returns what the room of candidate c is worth at most at the present
// values, by linear relaxation, and leaves the shadow prices that say so. When its
// ceiling or those of last time show that it is not worth more than enough, they do.
func (p *pricer) limit(c int, enough float64) float64 {
	p.budget.Spend(1)
	if limit := p.ceilings.of(c); limit <= enough {
		return limit
	}
	limit := p.worthAtMost(c, enough)
	if limit > enough {
		p.load(c)
		var steps int
		limit, steps = p.sack.Relax(p.shadow[c])
		p.budget.Spend(steps * (len(p.sack.Value) + p.dims) * p.dims)
	}
	p.lower(c, limit)
	return limit
}

// worthAtMost returns what the room of candidate c is worth at most by its shadow
// prices (Lagrange), or a part of that which is more than enough.
func (p *pricer) worthAtMost(c int, enough float64) float64 {
	sum, price := 0.0, p.shadow[c]
	for d, v := range p.space[c] {
		sum += price[d] * v
	}
	p.budget.Spend(2 * len(p.serves[c]) * p.dims)
	for i, l := range p.serves[c] {
		if sum > enough {
			break
		}
		v := p.values[l]
		for d, w := range p.lines[l].weight {
			v -= price[d] * w
		}
		if v > 0 {
			sum += v * float64(min(p.fits[c][i], p.count[l]))
		}
	}
	return sum
}

// load puts the room of candidate c and the lines it serves into the sack.
func (p *pricer) load(c int) {
	p.sack.Reset(p.space[c])
	for i, l := range p.serves[c] {
		if u := min(p.fits[c][i], p.count[l]); u > 0 && p.values[l] > 0 {
			p.sack.Add(p.values[l], float64(u), p.lines[l].weight)
		}
	}
}

// fillTries is how many mixes of resource prices fill tries.
const fillTries = 4

// nearlyFull is from which part of what a room can be worth at most no better pattern
// is looked for.
const nearlyFull = 0.999

// fill looks for a pattern of candidate c of high worth, by the greedy knapsack:
// it packs by worth per price of the request, at the shadow prices, and then at
// mixes that favour what ran out, until the worth is nearly enough. The result is
// good until the next call.
func (p *pricer) fill(c int, enough float64) (best []Portion, most float64) {
	room := p.room[c]
	dearest := 0.0
	for _, v := range p.shadow[c] {
		dearest = max(dearest, v)
	}
	if dearest == 0 {
		dearest = 1
	}
	for d, v := range p.shadow[c] {
		p.price[d] = v + 1e-6*dearest // what costs nothing still breaks ties
	}
	for range fillTries {
		copy(p.free, room)
		take := p.pour(c)
		if w := p.worth(take); w > most*(1+1e-12) {
			best, most = append(best[:0], take...), w
		}
		if most >= enough*nearlyFull {
			break
		}
		changed := false
		for d, v := range room {
			if v > 0 && p.free[d] > 0 {
				p.price[d] *= 1 - 0.9*float64(p.free[d])/float64(v)
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	return best, most
}

// density is the worth of a line's pods for the price of their request.
type density struct {
	line  int
	value float64
}

// byValue orders by density, highest first.
func byValue(a, b density) int {
	switch {
	case a.value > b.value || a.value == b.value && a.line < b.line:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// divide reorders lines, of which there are three or more, so that the first of them
// are denser than the others, and returns how many: one at least, and not all.
func divide(items []density) int {
	first, last := 0, len(items)-1
	middle := median(items[first], items[last/2], items[last])
	for {
		for byValue(items[first], middle) < 0 {
			first++
		}
		for byValue(middle, items[last]) < 0 {
			last--
		}
		if first >= last {
			return first
		}
		items[first], items[last] = items[last], items[first]
		first, last = first+1, last-1
	}
}

func median(a, b, c density) density {
	if byValue(b, a) < 0 {
		a, b = b, a
	}
	if byValue(c, b) >= 0 {
		return b
	}
	if byValue(c, a) < 0 {
		return a
	}
	return c
}

// pour packs lines into free in order of density, as many pods of each as fit.
// The result is good until it is called again.
func (p *pricer) pour(c int) []Portion {
	items := p.dense[:0]
	for i, l := range p.serves[c] {
		if p.values[l] <= 0 || min(p.count[l], p.fits[c][i]) == 0 {
			continue
		}
		load := 1e-300
		for d, w := range p.lines[l].weight {
			load += p.price[d] * w
		}
		items = append(items, density{i, p.values[l] / load})
	}
	p.budget.Spend(len(items) * (p.dims + 16))
	p.dense, p.take = items, p.take[:0]
	p.packAll(c, items)
	return p.take
}

// sorted is from how many lines on they are divided before they are sorted.
const sorted = 12

// packAll is pour of these lines into what is free yet. It does not sort those that do
// not fit any more once denser ones are packed.
func (p *pricer) packAll(c int, items []density) {
	for len(items) > sorted {
		half := divide(items)
		p.packAll(c, items[:half])
		items = slices.DeleteFunc(items[half:], func(it density) bool { return !holds(p.free, p.lines[p.serves[c][it.line]].request) })
	}
	slices.SortFunc(items, byValue)
	for _, it := range items {
		l := p.serves[c][it.line]
		n := min(whole(p.free, p.lines[l].request), p.count[l], p.fits[c][it.line])
		if n == 0 || !p.compatible(c, p.take, l) {
			continue
		}
		p.take = append(p.take, Portion{l, n})
		for d, v := range p.lines[l].request {
			p.free[d] -= v * int64(n)
		}
	}
}

// compatible reports whether pods of the line may join those taken, resources
// not asked.
func (p *pricer) compatible(c int, take []Portion, l int) bool {
	for _, t := range take {
		if p.apart(&p.lines[l], &p.lines[t.Item]) {
			return false
		}
	}
	if p.Agree == nil || len(take) == 0 {
		return true
	}
	p.shared = p.shared[:0]
	for _, t := range take {
		p.shared = append(p.shared, p.lines[t.Item].members[0])
	}
	return p.Agree(c, append(p.shared, p.lines[l].members[0]))
}

// worth is what the pods taken are worth.
func (p *pricer) worth(take []Portion) float64 {
	sum := 0.0
	for _, t := range take {
		sum += p.values[t.Item] * float64(t.Pods)
	}
	return sum
}

// wanted is how many pods of the line the values are for.
func (p *pricer) wanted(l int) float64 { return float64(p.count[l]) * p.lines[l].likely }

// total is what all pods wanted are worth.
func (p *pricer) total() float64 { return p.totalOf(p.values) }

// totalOf is what all pods wanted are worth at these values.
func (p *pricer) totalOf(values []float64) float64 {
	sum := 0.0
	for l := range p.count {
		sum += values[l] * p.wanted(l)
	}
	return sum
}

// pricePerPod returns what a pod of line l costs at least when it has nodes of
// candidate c for itself.
func (p *pricer) pricePerPod(c, at int) float64 {
	n := min(p.fits[c][at], p.count[p.serves[c][at]])
	if n == 0 {
		return math.Inf(1)
	}
	return p.Candidates[c].Price / float64(n)
}
