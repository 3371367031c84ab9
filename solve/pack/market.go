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
	resources  []int                            // positions anybody demands; behind them, in vectors, come the groups
	groups     []group                          // demands that share a bound on one node
	room       [][]int64                        // by candidate, then resource or group
	rows       [][]int                          // by candidate: the rows it can take at least one pod of
	fits       [][]int                          // by candidate: how many pods of each of rows fit alone
	shares     func(c int, take []portion) bool // whether these rows may share a node

	opened  int       // demands that were brought to it, one by one
	demands []*demand // by row
	count   []int     // pods wanted, by row; 0 = none left
	request [][]int64 // by row, then resource or group
	values  []float64 // by row: what one pod is worth
	ratio   float64   // under values, no pattern is worth more than this times its price

	// The same in units of the largest room, which suits arithmetic.
	space  [][]float64
	weight [][]float64
	unit   []float64
	shadow [][]float64 // by candidate: prices of its resources when they were last worked out
	sack   lp.Knapsack

	scratch scratch

	patterns []pattern
	program  *lp.Program
	lines    []int   // by row: its row in program, -1 = not wanted
	columns  []int   // by column of program: index in patterns
	trouble  float64 // of it, in the price of each candidate
	budget   int     // fills that may still be spent on improvement
}

// pattern is how many pods of which rows share one node of a candidate.
type pattern struct {
	candidate int
	take      []portion // demand is a row of the market
}

// newMarket opens a market for the pods left of each demand. Demands that fit
// no candidate are left out.
func (k *Packer) newMarket(candidates []candidate, demands []*demand) *market {
	m := &market{candidates: candidates, resources: k.wanted, trouble: k.trouble()}
	for _, g := range k.groups {
		if slices.ContainsFunc(demands, func(d *demand) bool { return g.members.Has(d.index) }) {
			m.groups = append(m.groups, g)
		}
	}
	size := len(m.resources) + len(m.groups)
	m.unit, m.scratch.price = make([]float64, size), make([]float64, size)
	for _, c := range candidates {
		room := m.dense(c.free, func(g group) int { return g.limit })
		m.room, m.shadow = append(m.room, room), append(m.shadow, make([]float64, size))
		for r, v := range room {
			m.unit[r] = max(m.unit[r], float64(v), 1)
		}
	}
	for _, room := range m.room {
		m.space = append(m.space, m.scaled(room))
	}
	m.rows, m.fits = make([][]int, len(candidates)), make([][]int, len(candidates))
	for _, d := range demands {
		if d.open() > 0 {
			m.addDemand(d)
		}
	}
	m.values = make([]float64, len(m.demands))
	m.seed()
	return m
}

// dense returns the resources that matter, and what of says of each group.
func (m *market) dense(r model.Resources, of func(group) int) []int64 {
	out := make([]int64, 0, len(m.unit))
	for _, position := range m.resources {
		out = append(out, max(r.At(position), 0))
	}
	for _, g := range m.groups {
		out = append(out, int64(of(g)))
	}
	return out
}

func (m *market) scaled(dense []int64) []float64 {
	out := make([]float64, len(dense))
	for r, v := range dense {
		out[r] = float64(v) / m.unit[r]
	}
	return out
}

func (m *market) addDemand(d *demand) {
	row := len(m.demands)
	request := m.dense(d.Shape.Requests, func(g group) int {
		if g.members.Has(d.index) {
			return 1
		}
		return 0
	})
	served := false
	for c := range m.candidates {
		if !m.candidates[c].serves.Has(d.class) {
			continue
		}
		n := whole(m.room[c], request)
		if d.most > 0 {
			n = min(n, d.most)
		}
		if n > 0 {
			m.rows[c], m.fits[c] = append(m.rows[c], row), append(m.fits[c], n)
			served = true
		}
	}
	if served {
		m.demands, m.count = append(m.demands, d), append(m.count, d.open())
		m.request, m.weight = append(m.request, request), append(m.weight, m.scaled(request))
	}
}

// coarse reports whether so few of the demands have pods left that smaller
// blocks would serve them better.
func (m *market) coarse() bool {
	if !m.mixed() {
		return false
	}
	n := 0
	for _, d := range m.demands {
		n += max(len(d.members), min(len(d.left), 1))
	}
	return n < m.opened/4
}

// mixed reports whether some row is a block.
func (m *market) mixed() bool { return slices.ContainsFunc(m.demands, (*demand).block) }

// parts reports whether pods of the two rows must not share a node.
func (m *market) parts(a, b int) bool {
	return m.demands[a].apart != nil && m.demands[a].apart.Has(m.demands[b].index)
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
		m.count[row] = d.open()
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

// forget drops the patterns that the solution does not use, but for those that
// make the program feasible.
func (m *market) forget() {
	kept := m.patterns[:len(m.demands):len(m.demands)]
	for column := range m.program.Used {
		if i := m.columns[column]; i >= len(m.demands) {
			kept = append(kept, m.patterns[i])
		}
	}
	m.patterns = kept
}

// fills reports whether there are pods left for most of what the pattern takes.
func (m *market) fills(p pattern) bool {
	there, all := 0.0, 0.0
	for _, t := range p.take {
		all += m.values[t.demand] * float64(t.pods)
		there += m.values[t.demand] * float64(min(t.pods, m.demands[t.demand].open()))
	}
	return there >= 0.98*all
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

// Programs are solved in far fewer pivots than these, which end a cycle.
const (
	pivots       = 5000
	pivotsPerRow = 50
)

// solve brings the values up to date with the patterns known.
func (m *market) solve() {
	values := m.program.Solve(pivots + pivotsPerRow*len(m.demands))
	for row, line := range m.lines {
		m.values[row] = 0
		if line >= 0 {
			m.values[row] = values[line]
		}
	}
}

// keen is the excess of worth over price from which a pattern is worth adding.
const keen = 1e-3

// optimise generates patterns until no candidate is found to have one that is
// worth more than its price, or so many rounds have passed, or the budget is
// spent.
func (m *market) optimise(rounds int) {
	m.solve()
	for ; rounds > 0 && m.budget > 0; rounds-- {
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

// few is how many rounds are enough where an optimum is not needed: the more
// rows there are, the dearer a round and the less rounding matters.
func (m *market) few() int { return 4 + 200/len(m.demands) }

// perRound is how many patterns one round of generation adds at most.
const perRound = 12 // and a fifth of the rows

// generate fills the candidates that may be worth more than their price at the
// present values and returns the patterns that are, best first.
func (m *market) generate() []pattern {
	type scored struct {
		pattern
		score float64
	}
	var found []scored
	for c := range m.candidates {
		price := m.candidates[c].price
		if m.worthLimit(c, price*(1+keen)) <= price*(1+keen) {
			continue
		}
		m.budget--
		take, worth := m.fill(c)
		if score := worth / price; score > 1+keen {
			found = append(found, scored{pattern{c, take}, score})
		}
	}
	m.budget--
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []pattern
	for _, f := range found[:min(perRound+len(m.demands)/5, len(found))] {
		out = append(out, f.pattern)
	}
	return out
}

// settle tightens what the market proves. Each round searches every candidate
// exactly for patterns that are worth more than their price, and solves again.
// The search looks at values between the best proven so far and the present
// ones, which swing less than the latter (Wentges 1997). Where that finds
// nothing to add it looks closer to the present ones. What is proven best stays
// as values and ratio: divided by the ratio, the values of the pods on any node
// are worth no more than the node costs (Farley 1990).
func (m *market) settle(rounds int) {
	best := make([]float64, len(m.values))
	bound, ratio, pull, idle := 0.0, 1.0, 0.0, 0
	for ; rounds > 0 && idle < settleIdle && m.total() > bound*(1+settled) && m.budget > 0; rounds-- {
		present := slices.Clone(m.values)
		for row, v := range best {
			m.values[row] = pull*v/ratio + (1-pull)*present[row]
		}
		found := m.prove(present)
		idle++
		if b := m.total() / m.ratio; b > bound {
			if b > bound*(1+settled/10) {
				idle = 0
			}
			bound, ratio = b, m.ratio
			copy(best, m.values)
		}
		copy(m.values, present)
		if found {
			before := m.total()
			m.optimise(m.few())
			if m.total() < before*(1-settled/10) {
				idle = 0
			}
			pull = settlePull
		} else {
			pull /= 2
		}
	}
	m.values, m.ratio = best, ratio
}

// How settle goes about it.
const (
	settlePull = 0.6  // weight of the best values proven so far
	settled    = 5e-3 // how close values and bound need to come
	settleIdle = 14   // rounds that bring little, before giving up

	settleWork = 1200 // rows looked at in all its rounds
)

// prove bounds the worth of the best pattern of every candidate by an exact
// search with a budget. It adds those it finds that are worth more than their
// price at the present values as well, and reports whether there was one.
func (m *market) prove(present []float64) bool {
	m.ratio = 1
	before := len(m.patterns)
	for c := range m.candidates {
		price := m.candidates[c].price - m.trouble
		if m.worthLimit(c, price) <= price {
			continue
		}
		found, limit := m.search(c)
		m.ratio = max(m.ratio, limit/price)
		for _, take := range found {
			if worth(take, present) > price*(1+keen/4) && m.shares(c, take) {
				m.add(pattern{c, take})
			}
		}
	}
	return len(m.patterns) > before
}

// worth is what the pods taken are worth at these values of the rows.
func worth(take []portion, values []float64) float64 {
	sum := 0.0
	for _, t := range take {
		sum += values[t.demand] * float64(t.pods)
	}
	return sum
}

// total is what all pods wanted are worth.
func (m *market) total() float64 {
	sum := 0.0
	for row, n := range m.count {
		sum += m.values[row] * float64(n)
	}
	return sum
}

// meanPrices returns the prices of resources over the nodes of the program's
// solution.
func (m *market) meanPrices() []float64 {
	out := make([]float64, len(m.unit))
	for column, amount := range m.program.Used {
		c := m.patterns[m.columns[column]].candidate
		m.load(c)
		m.sack.Relax(m.shadow[c])
		for r, p := range m.shadow[c] {
			out[r] += amount * p
		}
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
