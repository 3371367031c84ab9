// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
	"math"
	"slices"

	"karpenter/solve/lp"
)

// master is the restricted master problem: the covering program over the
// patterns known so far. Each of its rows stands for the lines of a set: what their
// pods are worth differs by fixed ratios, so a pattern covers of a row the sum of
// its pods by these.
type master struct {
	*pricer
	rows     [][]int   // lines, smallest first
	rowOf    []int     // by line
	share    []float64 // by line: what a pod is worth in units of its row
	patterns []pattern // the first of them cover one row each, by row
	priced   []int     // the candidates that the greedy knapsack looks at
	program  *lp.Program
	open     []bool    // by line: pods are left, and some candidate takes them
	at       []int     // by row: its row in program; -1 = no line is open
	columns  []int     // by column of program: index in patterns
	amounts  []float64 // by row
	best     []float64 // by line: the values that prove most so far, feasible for the dual as far as is known
	first    []find    // the greedy cover, in its order
	start    *Start    // that a problem with other limits can begin with
}

func newMaster(s *solver, o Options) *master {
	m := &master{pricer: newPricer(s, s.aggregate(o.lines()))}
	for c := range s.Candidates {
		m.priced = append(m.priced, c)
	}
	m.recount()
	n := len(m.pricer.lines)
	m.rows = s.rowsOf(m.pricer.lines, m.count, o.Rows)
	m.rowOf, m.share, m.open = make([]int, n), make([]float64, n), make([]bool, n)
	m.patterns, m.at, m.amounts = make([]pattern, len(m.rows)), make([]int, len(m.rows)), make([]float64, len(m.rows))
	m.begin(o)
	return m
}

// restart sets up the program for the pods that are left now, with the patterns
// known so far, cut down to those pods. It reports whether any row has pods left
// that limits let some candidate take.
func (m *master) restart() bool {
	var demand []float64
	m.recount()
	m.seed()
	for row, lines := range m.rows {
		sum := 0.0
		for _, l := range lines {
			if m.open[l] {
				sum += m.share[l] * m.wanted(l)
			}
		}
		if m.at[row] = -1; sum > 0 {
			m.at[row], demand = len(demand), append(demand, sum)
		}
	}
	m.program, m.columns = lp.New(demand), m.columns[:0]
	for i := range m.patterns {
		m.offer(i)
	}
	return len(demand) > 0
}

// recount counts the pods that lines have left.
func (m *master) recount() {
	for l := range m.pricer.lines {
		m.count[l] = 0
		for _, i := range m.pricer.lines[l].members {
			m.count[l] += m.left[i]
		}
	}
}

// seed sets the first patterns, which make the program feasible: for each row
// that of one line alone which is cheapest for what it covers. It finds which lines
// are open.
func (m *master) seed() {
	price := slices.Repeat([]float64{math.Inf(1)}, len(m.rows))
	clear(m.open)
	for row := range m.rows {
		m.patterns[row] = pattern{candidate: -1}
	}
	for c := range m.Candidates {
		if m.allow(c, 1) == 0 {
			continue
		}
		for i, l := range m.serves[c] {
			if m.count[l] == 0 {
				continue
			}
			m.open[l] = true
			row := m.rowOf[l]
			if p := m.pricePerPod(c, i) / m.share[l]; p < price[row] {
				price[row], m.patterns[row] = p, pattern{c, []Portion{{l, min(m.fits[c][i], m.count[l])}}}
			}
		}
		m.budget.Spend(2 * len(m.serves[c]))
	}
}

// offer makes a pattern known to the program.
func (m *master) offer(i int) {
	p := &m.patterns[i]
	if p.candidate < 0 || m.allow(p.candidate, 1) == 0 {
		return
	}
	column := lp.Column{Price: m.Candidates[p.candidate].Price}
	for _, t := range p.take {
		if m.open[t.Item] {
			m.amounts[m.rowOf[t.Item]] += m.share[t.Item] * float64(min(t.Pods, m.count[t.Item]))
		}
	}
	for _, t := range p.take {
		row := m.rowOf[t.Item]
		if m.amounts[row] > 0 {
			column.Entries = append(column.Entries, lp.Entry{Row: m.at[row], Amount: m.amounts[row]})
			m.amounts[row] = 0
		}
	}
	m.budget.Spend(16 + 4*len(p.take))
	if len(column.Entries) > 0 {
		m.program.Add(column)
		m.columns = append(m.columns, i)
	}
}

// add makes a pattern known to the program, if there is one already, and to those
// that come.
func (m *master) add(p pattern) {
	m.patterns = append(m.patterns, p)
	if m.program != nil {
		m.offer(len(m.patterns) - 1)
	}
}

// forget drops the patterns that the solution does not use.
func (m *master) forget() {
	rows := len(m.rows)
	kept := m.patterns[:rows:rows]
	for column := range m.program.Used {
		if i := m.columns[column]; i >= rows {
			kept = append(kept, m.patterns[i])
		}
	}
	m.patterns = kept
}

// solve brings the values up to date with the patterns known.
func (m *master) solve() {
	values := m.program.Solve(m.budget)
	for l, row := range m.rowOf {
		m.values[l] = 0
		if m.open[l] {
			m.values[l] = values[m.at[row]] * m.share[l]
		}
	}
}

// Bounds of column generation.
const (
	closeEnough = 5e-3 // how close the values and what they prove need to come
	pullToBest  = 0.7  // weight of the best values so far
	farOff      = 0.8  // of the present values, below which the best ones are no guide
	little      = 2e-4 // the least gain of a round that is not idle
	idleRounds  = 8
)

// optimise generates patterns until no candidate is found to have one of
// negative reduced cost, or the values prove that the solution is close to the
// optimum, or so many rounds have passed, or the budget is spent.
//
// It prices at values between those that prove most so far and the present ones,
// because the latter swing widely (Wentges 1997). Values prove what they add up
// to, divided by the largest ratio of a pattern's worth to its price (Farley
// 1990). Where nothing is found it looks closer to the present values.
func (m *master) optimise(rounds int, price pricing) {
	m.solve()
	pull, bound, idle := pullToBest, m.totalOf(m.best), 0
	for ; rounds > 0 && idle < idleRounds && !m.budget.Spent() && m.total() > bound*(1+closeEnough); rounds-- {
		before, present := m.total(), slices.Clone(m.values)
		if bound < farOff*before {
			pull = 0
		}
		for row, v := range m.best {
			m.values[row] = pull*v + (1-pull)*present[row]
		}
		ratio, found := price(m, present)
		if b := m.total() / ratio; b > bound {
			bound = b
			for row, v := range m.values {
				m.best[row] = v / ratio
			}
		}
		copy(m.values, present)
		switch {
		case found:
			pull = pullToBest
			m.solve()
		case pull == 0:
			return
		default:
			pull = 0
			continue
		}
		idle++
		if m.total() < before*(1-little) {
			idle = 0
		}
	}
}

// pricing looks at every candidate and adds patterns that are worth more than
// their price at the present values. It returns the largest ratio of worth to
// price at the values of m, and whether it added any.
type pricing func(m *master, present []float64) (ratio float64, found bool)

// perRound is how many patterns one round of the greedy knapsack adds at most.
const perRound = 16 // and as many as there are rows

// greedily prices with the greedy knapsack, and bounds with its relaxation.
func greedily(m *master, present []float64) (ratio float64, found bool) {
	type scored struct {
		pattern
		score float64
	}
	ratio = 1
	m.revalue(m.values)
	var all []scored
	for _, c := range m.priced {
		price := m.Candidates[c].Price
		limit := m.limit(c, price)
		if limit <= price || m.allow(c, 1) == 0 {
			continue
		}
		ratio = max(ratio, limit/max(price, 1e-300))
		for _, take := range m.fillDifferently(c, limit) {
			if score := worthAt(take, present) / max(price, 1e-300); score > 1+negligible {
				all = append(all, scored{pattern{c, take}, score})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, f := range all[:min(perRound+len(m.rows), len(all))] {
		m.add(f.pattern)
	}
	return ratio, len(all) > 0
}

// Patterns of one candidate in a round.
const (
	variants = 3
	jaded    = 0.95 // what a pod is worth in the next pattern if it is in one
)

// fillDifferently returns patterns of candidate c of high worth, which is at most
// limit. A program gets along with fewer rounds when it knows more than one.
func (m *master) fillDifferently(c int, limit float64) [][]Portion {
	var out [][]Portion
	for range variants {
		take, _ := m.fill(c, limit)
		if len(take) == 0 || slices.ContainsFunc(out, func(o []Portion) bool { return slices.Equal(o, take) }) {
			break
		}
		out = append(out, slices.Clone(take))
		for _, t := range take {
			m.values[t.Item] *= jaded
		}
	}
	for _, take := range out {
		for _, t := range take {
			m.values[t.Item] /= jaded
		}
	}
	return out
}

// exactly prices by branch and bound, as far as the budget goes.
func exactly(m *master, present []float64) (ratio float64, found bool) {
	ratio = 1
	m.revalue(m.values)
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
			if worthAt(take, present) > price*(1+negligible/4) && m.agreed(c, take) {
				m.add(pattern{c, take})
				found = true
			}
		}
	}
	return ratio, found
}

// exactShare is the part of the budget that is left which refine may use.
const exactShare = 0.2

// refine finds patterns that the greedy knapsack misses, and tightens what the
// values prove. Of many lines some fill every gap, so there is little to find.
func (m *master) refine() {
	if len(m.pricer.lines) <= mostRows {
		m.within(exactShare, func() { m.optimise(math.MaxInt, exactly) })
	}
}

// priceFew has the greedy knapsack look only at candidates of which a pattern comes
// close to its price at the present values.
func (m *master) priceFew() {
	m.solve()
	m.revalue(m.values)
	m.priced = slices.DeleteFunc(m.priced, func(c int) bool {
		price := m.Candidates[c].Price
		return m.limit(c, farOff*price) < farOff*price
	})
}

// promising returns the patterns that come close to their price at the present
// values.
func (m *master) promising() Columns {
	var out Columns
	for _, p := range m.patterns[len(m.rows):] {
		if worthAt(p.take, m.values) >= closeToPrice*m.Candidates[p.candidate].Price {
			out = append(out, p)
		}
	}
	return out
}

// begin sets the values before any pattern is priced and, unless patterns are known
// of a similar problem, makes those known of a cover.
func (m *master) begin(o Options) {
	var a *ascent
	switch {
	case o.Start != nil:
		a = m.resume(o.Start)
	case o.Values == nil || len(o.Known) == 0:
		a = m.ascend().near(nearEnd)
	}
	if o.Values == nil {
		copy(m.values, a.best)
	} else {
		for l, line := range m.pricer.lines {
			m.values[l] = meanOf(o.Values, line.members)
		}
	}
	m.best = slices.Clone(m.values)
	for row, lines := range m.rows {
		slices.SortStableFunc(lines, func(a, b int) int { return cmp.Compare(m.values[a], m.values[b]) })
		for _, l := range lines {
			m.rowOf[l], m.share[l] = row, 1
			if m.values[l] > 0 && m.values[lines[len(lines)-1]] > 0 {
				m.share[l] = m.values[l] / m.values[lines[len(lines)-1]]
			}
		}
	}
	if a != nil && len(m.Limits) > 0 {
		m.start = a.start()
	}
	if len(o.Known) == 0 {
		m.coverGreedily(a)
	}
}

// coverGreedily makes the patterns of a greedy cover known, or of two if there are few
// lines: then chance counts for more.
func (m *master) coverGreedily(a *ascent) {
	found := m.patternsOf(&greedy{pricer: m.pricer, ascent: a})
	m.first = slices.Clone(found)
	if len(m.pricer.lines) <= fewRows {
		found = append(found, m.patternsOf(&greedy{pricer: m.pricer, ascent: a, byRatio: true})...)
	}
	slices.SortStableFunc(found, func(a, b find) int { return cmp.Compare(m.priceOf(b), m.priceOf(a)) })
	for _, f := range found[:min(len(found), knownPerRow*len(m.rows))] {
		m.add(f.pattern)
	}
}

// patternsOf returns the patterns of the greedy cover.
func (m *master) patternsOf(g *greedy) []find {
	m.recount()
	m.within(greedyShare, g.cover)
	return g.found
}

func meanOf(values []float64, some []int) float64 {
	sum := 0.0
	for _, i := range some {
		sum += values[i]
	}
	return sum / float64(len(some))
}

// closeToPrice is from which ratio of worth to price on a pattern is worth knowing
// from the start.
const closeToPrice = 0.9

func scaled(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * by
	}
	return out
}

// worthAt is what the pods taken are worth at these values.
func worthAt(take []Portion, values []float64) float64 {
	sum := 0.0
	for _, t := range take {
		sum += values[t.Item] * float64(t.Pods)
	}
	return sum
}
