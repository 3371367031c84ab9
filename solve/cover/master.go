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
	program  *lp.Program
	lines    []int     // by row: its row in program; -1 = no pods left, or nothing covers it any more
	columns  []int     // by column of program: index in patterns
	promise  []float64 // by candidate: worth for price when it was last priced
	order    []int     // candidates, most promising first
}

// pattern is how many pods of which rows share one node of a candidate.
type pattern struct {
	candidate int // -1 = none covers the row
	take      []Portion
}

func newMaster(s *solver, rows []line) *master {
	m := &master{
		pricer: newPricer(s, rows), lines: make([]int, len(rows)), promise: slices.Repeat([]float64{math.Inf(1)}, len(s.Candidates)),
		patterns: make([]pattern, len(rows)),
	}
	for c := range s.Candidates {
		m.order = append(m.order, c)
	}
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

// optimise generates patterns until no candidate is found to have one of
// negative reduced cost, or so many rounds have passed, or the budget is spent.
func (m *master) optimise(rounds int) {
	m.solve()
	for ; rounds > 0 && !m.budget.Spent(); rounds-- {
		found := m.generate()
		if len(found) == 0 {
			return
		}
		for _, p := range found {
			m.patterns = append(m.patterns, p)
			m.offer(len(m.patterns) - 1)
		}
		m.solve()
	}
}

// Bounds of one round of generation.
const (
	negligible = 1e-3 // excess of worth over price that is not worth a pattern
	perRound   = 12   // patterns that are added at most, and a fifth of the rows
	lookAhead  = 48   // candidates looked at, most promising first, before a round is content with what it found
)

// generate prices the candidates at the present values, those first that
// promised most the last time, and returns patterns of negative reduced cost,
// best first. It returns none only after it has looked at all.
func (m *master) generate() []pattern {
	type scored struct {
		pattern
		score float64
	}
	slices.SortStableFunc(m.order, func(a, b int) int { return cmp.Compare(m.promise[b], m.promise[a]) })
	want := perRound + len(m.count)/5
	var found []scored
	for looked, c := range m.order {
		if looked >= lookAhead && len(found) >= want/2 || m.budget.Spent() {
			break
		}
		if m.allow(c, 1) == 0 {
			continue
		}
		price := m.Candidates[c].Price
		limit := m.limit(c, price*(1+negligible))
		m.promise[c] = limit / max(price, 1e-300)
		if limit <= price*(1+negligible) {
			continue
		}
		take, worth := m.fill(c)
		if score := worth / max(price, 1e-300); score > 1+negligible {
			found = append(found, scored{pattern{c, slices.Clone(take)}, score})
		} else {
			m.promise[c] = score
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []pattern
	for _, f := range found[:min(want, len(found))] {
		out = append(out, f.pattern)
	}
	return out
}
