// Package lp solves covering linear programs
//
//	minimise Σ price_k·x_k  subject to  Σ column_k·x_k ≥ demand,  x ≥ 0
//
// whose columns are found as one goes (column generation): solve with the
// columns known, look at the value (dual) of each row, add a column that is
// worth more than its price under those values, solve again. The method is the
// revised simplex with a dense inverse of the basis; it suits some hundred
// rows and thousands of columns.
package lp

import "math"

// Entry is one coefficient of a column.
type Entry struct {
	Row    int
	Amount float64 // > 0
}

// Column is something that can be bought.
type Column struct {
	Price   float64 // > 0
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
	demand  []float64
	columns []Column

	basis   []int       // per row: index of a column, or slack or artificial
	inverse [][]float64 // of the basis matrix
	amount  []float64   // of each basis column
	dearest float64     // of columns
}

// What a basis entry below zero stands for: -1-row is the slack of a row, and
// artificial a column that no optimum keeps.
const artificial = math.MinInt

// New returns the program without columns. Every demand must be positive.
func New(demand []float64) *Program {
	p := &Program{demand: demand}
	n := len(demand)
	for i := range n {
		row := make([]float64, n)
		row[i] = 1
		p.inverse = append(p.inverse, row)
		p.basis = append(p.basis, artificial)
		p.amount = append(p.amount, demand[i])
	}
	return p
}

// Add makes a column known and returns its index.
func (p *Program) Add(c Column) int {
	p.columns = append(p.columns, c)
	p.dearest = max(p.dearest, c.Price)
	return len(p.columns) - 1
}

// tolerance is the relative excess of worth over price that counts as none.
const tolerance = 1e-9

// Solve optimises over the known columns, taking at most so many pivots, and
// returns the value of each row. Every row must be covered by some known
// column.
func (p *Program) Solve(steps int) []float64 {
	values := p.values()
	for step := range steps {
		if step%refresh == refresh-1 {
			values = p.values() // rid of rounding errors
		}
		enter, excess := artificial, tolerance
		for i := range p.columns {
			if x := p.columns[i].Worth(values)/p.columns[i].Price - 1; x > excess {
				enter, excess = i, x
			}
		}
		if enter == artificial {
			if enter = p.slack(values); enter == artificial {
				break
			}
		}
		if !p.pivot(enter, values) {
			break
		}
	}
	for i := range values {
		values[i] = max(values[i], 0)
	}
	return values
}

// refresh is after how many pivots the values are worked out anew.
const refresh = 50

// slack returns the slack of the row whose value is negative by most.
func (p *Program) slack(values []float64) int {
	enter, least := artificial, 0.0
	for i, v := range values {
		least = min(least, -1e-9*math.Abs(v))
		if v < least {
			enter, least = -1-i, v
		}
	}
	return enter
}

// Used yields the columns bought and how much of each.
func (p *Program) Used(yield func(column int, amount float64) bool) {
	for i, c := range p.basis {
		if c >= 0 && p.amount[i] > 1e-9 && !yield(c, p.amount[i]) {
			return
		}
	}
}

// artificialPrice is dearer than any real way to cover a row: far above the
// dearest column, and still small enough not to drown the others' digits.
func (p *Program) artificialPrice() float64 { return max(p.dearest, 1) * 16 }

// values returns the prices of the basis times its inverse.
func (p *Program) values() []float64 {
	out := make([]float64, len(p.demand))
	penalty := p.artificialPrice()
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
		for j, v := range p.inverse[i] {
			out[j] += price * v
		}
	}
	return out
}

// pivot brings a column or slack into the basis and the values up to date. It
// reports false when rounding has left no row to take its place.
func (p *Program) pivot(enter int, values []float64) bool {
	direction := p.direction(enter)
	out := p.leaving(direction)
	if out < 0 {
		return false
	}
	excess := 0.0 // of worth over price
	if enter >= 0 {
		excess = p.columns[enter].Worth(values) - p.columns[enter].Price
	} else {
		excess = -values[-1-enter]
	}
	step := p.amount[out] / direction[out]
	for i := range p.amount {
		p.amount[i] = max(p.amount[i]-step*direction[i], 0)
	}
	p.amount[out], p.basis[out] = step, enter
	row := p.inverse[out]
	for j := range row {
		row[j] /= direction[out]
		values[j] -= excess * row[j]
	}
	for i, other := range p.inverse {
		if f := direction[i]; i != out && f != 0 {
			for j, v := range row {
				other[j] -= f * v
			}
		}
	}
	return true
}

// direction is the inverse times the entering column.
func (p *Program) direction(enter int) []float64 {
	out := make([]float64, len(p.basis))
	entries := []Entry{{-1 - enter, -1}}
	if enter >= 0 {
		entries = p.columns[enter].Entries
	}
	for i, row := range p.inverse {
		for _, e := range entries {
			out[i] += row[e.Row] * e.Amount
		}
	}
	return out
}

// leaving finds the basis entry that reaches zero first. Among equals it
// prefers the largest pivot, which keeps the inverse accurate.
func (p *Program) leaving(direction []float64) int {
	out, least := -1, math.Inf(1)
	for i, d := range direction {
		if d <= 1e-10 {
			continue
		}
		switch r := p.amount[i] / d; {
		case r < least*(1-1e-12):
			out, least = i, r
		case r <= least && d > direction[out]:
			out = i
		}
	}
	return out
}
