package lp

import "math"

// Tags of columns that are not the Pricer's.
const (
	surplus    = -1
	artificial = -2
)

// tableau is a basis with its inverse.
type tableau struct {
	demand  []float64
	basis   []Column
	inverse [][]float64
	amount  []float64 // of each basis column
}

// newTableau starts from one column per row, as dear as covering that row
// alone is, so that it is feasible from the first step.
func newTableau(demand []float64, price Pricer) *tableau {
	n := len(demand)
	t := &tableau{demand: demand}
	for i := range n {
		alone := make([]float64, n)
		alone[i] = 1
		c := price(alone)
		t.basis = append(t.basis, Column{Price: c.Price / value(c, alone) * 4, Entries: []Entry{{i, 1}}, Tag: artificial})
		row := make([]float64, n)
		row[i] = 1
		t.inverse = append(t.inverse, row)
		t.amount = append(t.amount, demand[i])
	}
	return t
}

// values returns the price of the basis times its inverse.
func (t *tableau) values() []float64 {
	out := make([]float64, len(t.demand))
	for i, c := range t.basis {
		if c.Price == 0 {
			continue
		}
		for j, v := range t.inverse[i] {
			out[j] += c.Price * v
		}
	}
	return out
}

// enter pivots c into the basis.
func (t *tableau) enter(c Column) {
	direction := make([]float64, len(t.basis))
	for i, row := range t.inverse {
		for _, e := range c.Entries {
			direction[i] += row[e.Row] * e.Amount
		}
	}
	out := t.leaving(direction)
	if out < 0 {
		return
	}
	step := t.amount[out] / direction[out]
	for i := range t.amount {
		t.amount[i] = max(t.amount[i]-step*direction[i], 0)
	}
	t.amount[out] = step
	t.basis[out] = c
	pivot := t.inverse[out]
	for j := range pivot {
		pivot[j] /= direction[out]
	}
	for i, row := range t.inverse {
		if f := direction[i]; i != out && f != 0 {
			for j := range row {
				row[j] -= f * pivot[j]
			}
		}
	}
}

// leaving finds the basis column that reaches zero first. Among equals it
// prefers the largest pivot, which keeps the inverse accurate.
func (t *tableau) leaving(direction []float64) int {
	out, least := -1, math.Inf(1)
	for i, d := range direction {
		if d <= 1e-11 {
			continue
		}
		switch r := t.amount[i] / d; {
		case r < least*(1-1e-12):
			out, least = i, r
		case r <= least && d > direction[out]:
			out = i
		}
	}
	return out
}

// solution scales the values until no column is worth more than its price.
func (t *tableau) solution(price Pricer, steps int) Solution {
	s := Solution{Values: t.values(), Steps: steps}
	for i := range s.Values {
		s.Values[i] = max(s.Values[i], 0)
	}
	c := price(s.Values)
	if ratio := value(c, s.Values) / c.Price; ratio > 1 {
		for i := range s.Values {
			s.Values[i] /= ratio
		}
	}
	for i, v := range s.Values {
		s.Bound += v * t.demand[i]
	}
	s.Bound *= 1 - 1e-12 // rounding of the sum must not lift it above the truth
	for i, c := range t.basis {
		if c.Tag >= 0 && t.amount[i] > 0 {
			s.Used = append(s.Used, Use{c, t.amount[i]})
		}
	}
	return s
}
