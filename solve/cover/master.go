// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
	"math"
	"slices"

	"karpenter/solve/lp"
)

// master is the restricted master problem: the covering program over the
// patterns known so far, of the rows that have pods left.
type master struct {
	*pricer
	patterns []pattern // the first of them cover one row each, by row
	priced   []int     // the candidates that the greedy knapsack looks at
	program  *lp.Program
	lines    []int     // by row: its row in program; -1 = no pods left, or nothing covers it any more
	columns  []int     // by column of program: index in patterns
	best     []float64 // by row: the values that prove most so far, feasible for the dual as far as is known
}

func newMaster(s *solver, rows []line) *master {
	m := &master{pricer: newPricer(s, rows), lines: make([]int, len(rows)), patterns: make([]pattern, len(rows))}
	for c := range s.Candidates {
		m.priced = append(m.priced, c)
	}
	m.begin()
	return m
}

// restart sets up the program for the pods that are left now, with the patterns
// known so far, cut down to those pods. It reports whether any row has pods left
// that limits let some candidate take.
func (m *master) restart() bool {
	var demand []float64
	m.recount()
	m.seed()
	for row, n := range m.count {
		m.lines[row] = -1
		if n > 0 && m.patterns[row].candidate >= 0 {
			m.lines[row], demand = len(demand), append(demand, float64(n))
		}
	}
	m.program, m.columns = lp.New(demand), m.columns[:0]
	for i := range m.patterns {
		m.offer(i)
	}
	return len(demand) > 0
}

// recount counts the pods that rows have left.
func (m *master) recount() {
	for row := range m.pricer.lines {
		m.count[row] = 0
		for _, i := range m.pricer.lines[row].members {
			m.count[row] += m.left[i]
		}
	}
}

// seed sets the first patterns, which make the program feasible: for each row
// that of the row alone which is cheapest per pod.
func (m *master) seed() {
	price := slices.Repeat([]float64{math.Inf(1)}, len(m.count))
	for row := range m.count {
		m.patterns[row] = pattern{candidate: -1}
	}
	for c := range m.Candidates {
		if m.allow(c, 1) == 0 {
			continue
		}
		for i, row := range m.serves[c] {
			if m.count[row] == 0 {
				continue
			}
			if p := m.pricePerPod(c, i); p < price[row] {
				price[row], m.patterns[row] = p, pattern{c, []Portion{{row, min(m.fits[c][i], m.count[row])}}}
			}
		}
		m.budget.Spend(len(m.serves[c]))
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
		if line := m.lines[t.Item]; line >= 0 {
			column.Entries = append(column.Entries, lp.Entry{Row: line, Amount: float64(min(t.Pods, m.count[t.Item]))})
		}
	}
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
	rows := len(m.count)
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
	for row, line := range m.lines {
		m.values[row] = 0
		if line >= 0 {
			m.values[row] = values[line]
		}
	}
}

// Bounds of column generation.
const (
	closeEnough = 5e-3 // how close the values and what they prove need to come
	pullToBest  = 0.7  // weight of the best values so far
	farOff      = 0.8  // of the present values, below which the best ones are no guide
	little      = 2e-4 // the least gain of a round that is not idle
	idleRounds  = 12
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
const perRound = 16 // and half of the rows

// greedily prices with the greedy knapsack, and bounds with its relaxation.
func greedily(m *master, present []float64) (ratio float64, found bool) {
	type scored struct {
		pattern
		score float64
	}
	ratio = 1
	var all []scored
	for _, c := range m.priced {
		price := m.Candidates[c].Price
		limit := m.limit(c, price)
		if limit <= price || m.allow(c, 1) == 0 {
			continue
		}
		ratio = max(ratio, limit/max(price, 1e-300))
		take, _ := m.fill(c)
		if score := worthAt(take, present) / max(price, 1e-300); score > 1+negligible {
			all = append(all, scored{pattern{c, slices.Clone(take)}, score})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, f := range all[:min(perRound+len(m.count)/2, len(all))] {
		m.add(f.pattern)
	}
	return ratio, len(all) > 0
}

// exactly prices by branch and bound, as far as the budget goes.
func exactly(m *master, present []float64) (ratio float64, found bool) {
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
// values prove.
func (m *master) refine() {
	all := m.budget
	m.budget = all.Part(exactShare)
	m.optimise(math.MaxInt, exactly)
	all.Return(m.budget)
	m.budget = all
}

// priceFew has the greedy knapsack look only at candidates of which a pattern comes
// close to its price at the present values.
func (m *master) priceFew() {
	m.solve()
	m.priced = slices.DeleteFunc(m.priced, func(c int) bool {
		price := m.Candidates[c].Price
		return m.limit(c, farOff*price) < farOff*price
	})
}

// promising returns the patterns that come close to their price at the present
// values.
func (m *master) promising() Columns {
	var out Columns
	for _, p := range m.patterns[len(m.count):] {
		if worthAt(p.take, m.values) >= closeToPrice*m.Candidates[p.candidate].Price {
			out = append(out, p)
		}
	}
	return out
}

// begin sets the values before anything is known: what a pod would cost if its
// largest request could fill a node to the brim. Patterns that come close to
// their price at these values are known from the start.
func (m *master) begin() {
	for row := range m.values {
		m.values[row] = math.Inf(1)
	}
	for c := range m.Candidates {
		for _, row := range m.serves[c] {
			share := 0.0
			if l := &m.pricer.lines[row]; l.most > 0 {
				share = 1 / float64(l.most)
			}
			for d, v := range m.pricer.lines[row].request {
				if v > 0 {
					share = max(share, float64(v)/float64(m.room[c][d]))
				}
			}
			m.values[row] = min(m.values[row], share*m.Candidates[c].Price)
		}
		m.budget.Spend(len(m.serves[c]) * m.dims)
	}
	for row, v := range m.values {
		if math.IsInf(v, 1) {
			m.values[row] = 0
		}
	}
	m.recount()
	ratio, _ := greedily(m, scaled(m.values, 1/closeToPrice))
	m.best = scaled(m.values, 1/ratio)
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
