// SPDX-License-Identifier: Apache-2.0

// Package lp solves covering linear programs
//
//	minimise Σ price_k·x_k  subject to  Σ column_k·x_k ≥ demand,  x ≥ 0
//
// whose columns are found as one goes (column generation): solve with the
// columns known, look at the dual value of each row, add a column that is worth
// more than its price under those values, solve again.
//
// The method is the revised primal simplex with a dense inverse of the basis.
// It suits up to about a hundred rows and thousands of columns. Three measures
// keep it fast on the degenerate programs that packing gives rise to: each row
// starts with a column that covers it alone, the demands are perturbed by a
// fixed pseudo-random trifle so that no two rows tie, and columns are priced in
// sections.
package lp

import (
	"math"
	"slices"

	"karpenter/solve/work"
)

// Entry is one coefficient of a column.
type Entry struct {
	Row    int
	Amount float64 // > 0
}

// Column is something that can be launched.
type Column struct {
	Price   float64 // ≥ 0
	Entries []Entry
}

// Worth is what the column brings at these values of the rows.
func (c Column) Worth(values []float64) float64 {
	sum := 0.0
	for _, e := range c.Entries {
		sum += e.Amount * values[e.Row]
	}
	return sum
}

// Program is a covering program with the columns known so far.
type Program struct {
	rows    int
	demand  []float64
	shifted []float64 // demand, perturbed
	columns []Column

	basis     []int     // per row: index of a column, or slack or artificial
	basic     []bool    // by column: it is in the basis
	inverse   []float64 // of the basis matrix, row by row
	amount    []float64 // of each basis column, for the perturbed demand
	values    []float64 // dual value of each row
	direction []float64
	dearest   float64 // price of the most expensive column
	cursor    int     // column at which the next section to price begins
	pristine  bool    // no pivot was made yet
}

// What a basis entry below zero stands for: -1-row is the slack of a row, and
// artificial a column that no optimum keeps.
const artificial = math.MinInt

// New returns the program without columns. Every demand must be positive.
func New(demand []float64) *Program {
	n := len(demand)
	p := &Program{
		rows: n, demand: demand, shifted: make([]float64, n), basis: slices.Repeat([]int{artificial}, n),
		inverse: make([]float64, n*n), values: make([]float64, n), direction: make([]float64, n), pristine: true,
	}
	for i := range n {
		p.inverse[i*n+i] = 1
		p.shifted[i] = demand[i] * (1 + perturbation*fraction(i))
	}
	p.amount = slices.Clone(p.shifted)
	return p
}

// perturbation is how much a demand is changed at most, as a fraction of it.
const perturbation = 1e-5

// fraction returns a number in (0, 1] that is different for every row, by the
// golden ratio.
func fraction(row int) float64 {
	_, f := math.Modf(float64(row+1) * math.Phi)
	return f
}

// Add makes a column known and returns its index. As long as the program has
// not been solved, a column that covers one row alone becomes the start of that
// row.
func (p *Program) Add(c Column) int {
	at := len(p.columns)
	p.columns, p.basic = append(p.columns, c), append(p.basic, false)
	p.dearest = max(p.dearest, c.Price)
	if p.pristine && len(c.Entries) == 1 {
		if e := c.Entries[0]; p.basis[e.Row] == artificial {
			p.basis[e.Row], p.basic[at] = at, true
			p.inverse[e.Row*p.rows+e.Row] = 1 / e.Amount
			p.amount[e.Row] = p.shifted[e.Row] / e.Amount
		}
	}
	return at
}

// tolerance is the excess of worth over price, relative to the price of the
// most expensive column, that counts as none.
const tolerance = 1e-9

// refresh is after how many pivots the values are computed from the basis
// again, to be rid of rounding errors.
const refresh = 50

// A program needs a few pivots per row. These many end a cycle, which rounding
// errors can bring about.
const (
	pivotsPerRow  = 30
	pivotsAtLeast = 200
)

// Solve optimises over the known columns as long as the budget lasts, and
// returns the value of each row, none negative. The result is overwritten by
// the next Solve. Every row must be covered by some known column.
func (p *Program) Solve(budget *work.Budget) []float64 {
	p.pristine = false
	p.price()
	for step := 1; step <= pivotsPerRow*p.rows+pivotsAtLeast && !budget.Spent(); step++ {
		if step%refresh == 0 {
			p.price()
		}
		enter, excess := p.entering(budget)
		if enter == artificial || !p.pivot(enter, excess, budget) {
			break
		}
	}
	for i, v := range p.values {
		p.values[i] = max(v, 0)
	}
	return p.values
}

// sections is into how many parts the columns are divided for pricing: a pivot
// looks at one of them, and at the next ones only if it finds nothing there.
const sections = 4

// entering returns the column or slack to bring into the basis and by how much
// it is worth more than its price; artificial when the basis is optimal.
func (p *Program) entering(budget *work.Budget) (enter int, excess float64) {
	enter, best := artificial, 0.0
	least := tolerance * max(p.dearest, 1e-300)
	size := max(len(p.columns)/sections, 64)
	for looked := 0; looked < len(p.columns) && enter == artificial; looked += size {
		for range min(size, len(p.columns)-looked) {
			if p.cursor++; p.cursor >= len(p.columns) {
				p.cursor = 0
			}
			c := &p.columns[p.cursor]
			budget.Spend(len(c.Entries))
			if p.basic[p.cursor] {
				continue
			}
			x := c.Worth(p.values) - c.Price
			if score := x / max(c.Price, least); x > least && score > best {
				enter, best, excess = p.cursor, score, x
			}
		}
	}
	if enter != artificial {
		return enter, excess
	}
	for i, v := range p.values {
		if -v > excess && -v*p.demand[i] > least {
			enter, excess = -1-i, -v
		}
	}
	return enter, excess
}

// Used yields the columns launched and how much of each, for the demands as they
// are.
func (p *Program) Used(yield func(column int, amount float64) bool) {
	n := p.rows
	for i, c := range p.basis {
		if c < 0 {
			continue
		}
		amount := 0.0
		for j, v := range p.inverse[i*n : i*n+n] {
			amount += v * p.demand[j]
		}
		if amount > 1e-9 && !yield(c, amount) {
			return
		}
	}
}

// price computes the values: the prices of the basis times its inverse.
func (p *Program) price() {
	n := p.rows
	clear(p.values)
	penalty := max(p.dearest, 1) * 16 // far above every column, and small enough not to drown their digits
	for i, c := range p.basis {
		price := 0.0
		switch {
		case c >= 0:
			price = p.columns[c].Price
		case c == artificial:
			price = penalty
		}
		if price == 0 {
			continue
		}
		for j, v := range p.inverse[i*n : i*n+n] {
			p.values[j] += price * v
		}
	}
}

// pivot brings a column or slack, which is worth so much more than its price,
// into the basis and updates the values. It reports false when rounding has
// left no row to take its place.
func (p *Program) pivot(enter int, excess float64, budget *work.Budget) bool {
	n := p.rows
	budget.Spend(n * n)
	p.direct(enter)
	out := p.leaving()
	if out < 0 {
		return false
	}
	step := p.amount[out] / p.direction[out]
	for i := range p.amount {
		p.amount[i] = max(p.amount[i]-step*p.direction[i], 0)
	}
	if old := p.basis[out]; old >= 0 {
		p.basic[old] = false
	}
	if enter >= 0 {
		p.basic[enter] = true
	}
	p.amount[out], p.basis[out] = step, enter
	row := p.inverse[out*n : out*n+n]
	scale := 1 / p.direction[out]
	for j := range row {
		row[j] *= scale
		p.values[j] -= excess * row[j]
	}
	for i, f := range p.direction {
		if i == out || f == 0 {
			continue
		}
		other := p.inverse[i*n : i*n+n]
		for j, v := range row {
			other[j] -= f * v
		}
	}
	return true
}

// direct sets direction to the inverse times the entering column.
func (p *Program) direct(enter int) {
	n := p.rows
	if enter < 0 {
		for i := range p.direction {
			p.direction[i] = -p.inverse[i*n-1-enter]
		}
		return
	}
	entries := p.columns[enter].Entries
	for i := range p.direction {
		row, sum := p.inverse[i*n:i*n+n], 0.0
		for _, e := range entries {
			sum += row[e.Row] * e.Amount
		}
		p.direction[i] = sum
	}
}

// leaving finds the basis entry that reaches zero first. Among equals it
// prefers the largest pivot, which keeps the inverse accurate.
func (p *Program) leaving() int {
	out, least := -1, math.Inf(1)
	for i, d := range p.direction {
		if d <= 1e-10 {
			continue
		}
		switch r := p.amount[i] / d; {
		case r < least*(1-1e-12):
			out, least = i, r
		case r <= least && d > p.direction[out]:
			out = i
		}
	}
	return out
}
