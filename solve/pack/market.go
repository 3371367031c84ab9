package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/lp"
)

// market is a covering program over the demands that some candidates can
// serve: its rows are the demands, its columns the patterns found so far. Its
// solution says what a pod of each demand is worth and which patterns to buy.
type market struct {
	candidates []candidate
	resources  []int                            // positions anybody demands
	room       [][]int64                        // by candidate and position in resources
	rows       [][]int                          // by candidate: the rows it can take at least one pod of
	fits       [][]int                          // by candidate: how many pods of each of rows fit alone
	shares     func(c int, take []portion) bool // whether these rows may share a node

	demands []*demand // by row
	count   []int     // pods wanted, by row; 0 = none left
	request [][]int64 // by row and position in resources
	values  []float64 // by row: what one pod is worth
	ratio   float64   // under values, no pattern is worth more than this times its price

	patterns []pattern
	program  *lp.Program
	lines    []int // by row: its row in program, -1 = not wanted
	columns  []int // by column of program: index in patterns
	budget   int   // fills that may still be spent on improvement
}

// pattern is how many pods of which rows share one node of a candidate.
type pattern struct {
	candidate int
	take      []portion // demand is a row of the market
}

// newMarket opens a market for the pods left of each demand. Demands that fit
// no candidate are left out.
func newMarket(candidates []candidate, wanted []int, demands []*demand) *market {
	m := &market{candidates: candidates, resources: wanted}
	for _, c := range candidates {
		m.room = append(m.room, m.dense(c.free))
	}
	m.rows, m.fits = make([][]int, len(candidates)), make([][]int, len(candidates))
	for _, d := range demands {
		if len(d.left) > 0 {
			m.addDemand(d)
		}
	}
	m.values = make([]float64, len(m.demands))
	m.seed()
	return m
}

func (m *market) dense(r model.Resources) []int64 {
	out := make([]int64, len(m.resources))
	for i, position := range m.resources {
		out[i] = max(r.At(position), 0)
	}
	return out
}

func (m *market) addDemand(d *demand) {
	row := len(m.demands)
	request := m.dense(d.Shape.Requests)
	served := false
	for c := range m.candidates {
		if !m.candidates[c].serves.Has(d.class) {
			continue
		}
		if n := whole(m.room[c], request); n > 0 {
			m.rows[c], m.fits[c] = append(m.rows[c], row), append(m.fits[c], n)
			served = true
		}
	}
	if served {
		m.demands, m.count, m.request = append(m.demands, d), append(m.count, len(d.left)), append(m.request, request)
	}
}

// whole returns how many times request fits into room.
func whole(room, request []int64) int {
	n := int64(math.MaxInt32)
	for i, v := range request {
		if v > 0 {
			n = min(n, room[i]/v)
		}
	}
	return int(n)
}

// seed makes the program feasible: for each row the pattern of that row alone
// that is cheapest per pod.
func (m *market) seed() {
	best := make([]pattern, len(m.demands))
	price := slices.Repeat([]float64{math.Inf(1)}, len(m.demands))
	for c := range m.candidates {
		for i, row := range m.rows[c] {
			n := min(m.fits[c][i], m.count[row])
			if p := m.candidates[c].price / float64(n); p < price[row] {
				price[row], best[row] = p, pattern{c, []portion{{demand: row, pods: n}}}
			}
		}
	}
	m.patterns = best
}

// restart sets up the program for the pods that are left now, with the
// patterns known so far, cut down to those pods. It reports whether any pods
// are left.
func (m *market) restart() bool {
	var demand []float64
	m.lines = m.lines[:0]
	for row, d := range m.demands {
		m.count[row] = len(d.left)
		line := -1
		if m.count[row] > 0 {
			line, demand = len(demand), append(demand, float64(m.count[row]))
		}
		m.lines = append(m.lines, line)
	}
	m.program, m.columns = lp.New(demand), m.columns[:0]
	for i := range m.patterns {
		m.offer(i)
	}
	return len(demand) > 0
}

// offer makes a pattern known to the program.
func (m *market) offer(i int) {
	column := lp.Column{Price: m.candidates[m.patterns[i].candidate].price}
	for _, t := range m.patterns[i].take {
		if line := m.lines[t.demand]; line >= 0 {
			column.Entries = append(column.Entries, lp.Entry{Row: line, Amount: float64(min(t.pods, m.count[t.demand]))})
		}
	}
	if len(column.Entries) > 0 {
		m.program.Add(column)
		m.columns = append(m.columns, i)
	}
}

func (m *market) add(p pattern) {
	m.patterns = append(m.patterns, p)
	m.offer(len(m.patterns) - 1)
}

// solve brings the values up to date with the patterns known.
func (m *market) solve() {
	values := m.program.Solve(math.MaxInt)
	for row, line := range m.lines {
		m.values[row] = 0
		if line >= 0 {
			m.values[row] = values[line]
		}
	}
}

func (m *market) worth(take []portion) float64 {
	sum := 0.0
	for _, t := range take {
		sum += m.values[t.demand] * float64(t.pods)
	}
	return sum
}

// keen is the excess of worth over price from which a pattern is worth adding.
const keen = 1e-3

// optimise generates patterns until no candidate is found to have one that is
// worth more than its price, or the budget is spent.
func (m *market) optimise() {
	m.solve()
	for m.budget > 0 {
		found := m.generate()
		if len(found) == 0 {
			return
		}
		for _, p := range found {
			m.add(p)
		}
		m.solve()
	}
}

// perRound is how many patterns one round of generation adds at most.
const perRound = 12

// generate fills every candidate at the present values and returns the
// patterns that beat their price, best first.
func (m *market) generate() []pattern {
	type scored struct {
		pattern
		score float64
	}
	var found []scored
	for c := range m.candidates {
		take, worth := m.fill(c)
		if score := worth / m.candidates[c].price; score > 1+keen {
			found = append(found, scored{pattern{c, take}, score})
		}
	}
	m.budget -= len(m.candidates)
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []pattern
	for _, f := range found[:min(perRound, len(found))] {
		out = append(out, f.pattern)
	}
	return out
}

// prove bounds the worth of the best pattern of every candidate by an exact
// search with a budget, adding what it finds to be worth more than its price.
// It reports whether it found any.
func (m *market) prove() bool {
	m.ratio = 1
	found := false
	for c := range m.candidates {
		take, worth, limit := m.search(c)
		price := m.candidates[c].price
		if worth > price*(1+keen) && m.shares(c, take) {
			m.add(pattern{c, take})
			found = true
		}
		m.ratio = max(m.ratio, limit/price)
	}
	return found
}

// settle tightens what the market proves. Each round searches every candidate
// exactly, adds the patterns that are worth more than their price, and solves
// again. The search looks at values between the best proven so far and the
// present ones, which swing less than the latter (Wentges 1997); what is proven
// best stays as values and ratio: divided by the ratio, the values of the pods
// on any node are worth no more than the node costs (Farley 1990).
func (m *market) settle() {
	var best []float64
	bound, ratio := 0.0, 1.0
	for range settleRounds {
		present := slices.Clone(m.values)
		if best != nil {
			for row, v := range best {
				m.values[row] = settleCentre*v/ratio + (1-settleCentre)*m.values[row]
			}
		}
		found := m.prove()
		if b := m.total() / m.ratio; b > bound {
			best, bound, ratio = slices.Clone(m.values), b, m.ratio
		}
		copy(m.values, present)
		if !found || m.total() < bound*(1+keen) {
			break
		}
		m.optimise()
	}
	m.values, m.ratio = best, ratio
}

// How settle goes about it.
const (
	settleRounds = 8
	settleCentre = 0.5 // weight of the best values proven so far
)

// total is what all pods wanted are worth.
func (m *market) total() float64 {
	sum := 0.0
	for row, n := range m.count {
		sum += m.values[row] * float64(n)
	}
	return sum
}
