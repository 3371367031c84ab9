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
	demands    []*demand                        // rows of the program
	count      []int                            // pods wanted, by row
	request    [][]int64                        // by row and position in resources
	room       [][]int64                        // by candidate and position in resources
	rows       [][]int                          // by candidate: the rows it can take at least one pod of
	fits       [][]int                          // by candidate: how many pods of each of rows fit alone
	shares     func(c int, take []portion) bool // whether these rows may share a node
	program    *lp.Program
	patterns   []pattern // by column of program
	values     []float64 // by row
	ratio      float64   // no pattern is worth more than this times its price, under values
}

// pattern is how many pods of which rows share one node of a candidate.
type pattern struct {
	candidate int
	take      []portion // demand is a row of the market
}

// newMarket opens a market for amount pods of each demand. Demands that fit
// no candidate are left out.
func newMarket(candidates []candidate, wanted []int, demands []*demand, amount func(*demand) int) *market {
	m := &market{candidates: candidates, resources: wanted}
	for _, c := range candidates {
		m.room = append(m.room, m.dense(c.free))
	}
	m.rows, m.fits = make([][]int, len(candidates)), make([][]int, len(candidates))
	for _, d := range demands {
		if n := amount(d); n > 0 {
			m.addDemand(d, n)
		}
	}
	demand := make([]float64, len(m.count))
	for i, n := range m.count {
		demand[i] = float64(n)
	}
	m.program = lp.New(demand)
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

func (m *market) addDemand(d *demand, pods int) {
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
		m.demands, m.count, m.request = append(m.demands, d), append(m.count, pods), append(m.request, request)
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
	for _, p := range best {
		m.add(p)
	}
}

func (m *market) add(p pattern) {
	column := lp.Column{Price: m.candidates[p.candidate].price}
	for _, t := range p.take {
		column.Entries = append(column.Entries, lp.Entry{Row: t.demand, Amount: float64(t.pods)})
	}
	m.program.Add(column)
	m.patterns = append(m.patterns, p)
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

// optimise generates patterns until no candidate has one that is worth more
// than its price, or the budget of fills is spent. It returns what is left of
// the budget.
func (m *market) optimise(budget int) int {
	for budget > 0 && len(m.demands) > 0 {
		m.values = m.program.Solve(math.MaxInt)
		found := m.generate()
		budget -= len(m.candidates)
		if len(found) == 0 {
			break
		}
		for _, p := range found {
			m.add(p)
		}
	}
	return budget
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

// bound is what the values prove: no way to serve the rows costs less.
func (m *market) bound() float64 { return m.program.Bound(m.values, m.ratio) }
