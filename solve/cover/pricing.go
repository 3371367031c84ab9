// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
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
		price: make([]float64, s.dims), free: make([]int64, s.dims),
	}
	for c := range s.Candidates {
		p.shadow[c] = make([]float64, s.dims)
		for i := range lines {
			if !s.Candidates[c].Serves.Has(lines[i].class) {
				continue
			}
			n := whole(s.room[c], lines[i].request)
			if lines[i].most > 0 {
				n = min(n, lines[i].most)
			}
			if n > 0 {
				p.serves[c], p.fits[c] = append(p.serves[c], i), append(p.fits[c], n)
			}
		}
		s.budget.Spend(len(lines) * s.dims)
	}
	return p
}

// limit returns what the room of candidate c is worth at most at the present
// values, by linear relaxation, and leaves the shadow prices that say so. When
// those of last time show that it is not worth more than enough, they do.
func (p *pricer) limit(c int, enough float64) float64 {
	p.load(c)
	if limit := p.sack.Bound(p.shadow[c]); limit <= enough {
		return limit
	}
	limit, steps := p.sack.Relax(p.shadow[c])
	p.budget.Spend(steps * (len(p.sack.Value) + p.dims) * p.dims)
	return limit
}

// load puts the room of candidate c and the lines it serves into the sack.
func (p *pricer) load(c int) {
	p.sack.Reset(p.space[c])
	for i, l := range p.serves[c] {
		if u := min(p.fits[c][i], p.count[l]); u > 0 && p.values[l] > 0 {
			p.sack.Add(p.values[l], float64(u), p.lines[l].weight)
		}
	}
	p.budget.Spend(2 * len(p.serves[c]) * p.dims)
}

// fillTries is how many mixes of resource prices fill tries.
const fillTries = 4

// fill looks for a pattern of candidate c of high worth, by the greedy knapsack:
// it packs by worth per price of the request, at the shadow prices, and then at
// mixes that favour what ran out. The result is good until the next call.
func (p *pricer) fill(c int) (best []Portion, most float64) {
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
	if a.value != b.value {
		return cmp.Compare(b.value, a.value)
	}
	return cmp.Compare(a.line, b.line)
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
	p.dense = items
	slices.SortFunc(items, byValue)
	take := p.take[:0]
	for _, it := range items {
		l := p.serves[c][it.line]
		n := min(whole(p.free, p.lines[l].request), p.count[l], p.fits[c][it.line])
		if n == 0 || !p.compatible(c, take, l) {
			continue
		}
		take = append(take, Portion{l, n})
		for d, v := range p.lines[l].request {
			p.free[d] -= v * int64(n)
		}
	}
	p.take = take
	return take
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

// total is what all pods wanted are worth.
func (p *pricer) total() float64 { return p.totalOf(p.values) }

// totalOf is what all pods wanted are worth at these values.
func (p *pricer) totalOf(values []float64) float64 {
	sum := 0.0
	for l, n := range p.count {
		sum += values[l] * float64(n)
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
