// Package lp solves covering linear programs by column generation:
//
//	minimise Σ price_k·x_k  subject to  Σ column_k·x_k ≥ demand,  x ≥ 0,
//
// where the columns are not listed but asked for: given the value (dual) of
// each row, a Pricer names the column that brings the most value for its
// price. The method is the revised simplex with a dense basis inverse; it
// suits some hundred rows and any number of columns.
//
// The values returned are feasible for the dual after division by the best
// ratio the Pricer can still find, so they prove a lower bound on the optimum
// whether or not the method ran to its end (Farley 1990).
package lp

import "slices"

// Entry is one non-zero coefficient of a column.
type Entry struct {
	Row    int
	Amount float64 // > 0
}

// Column is something that can be bought.
type Column struct {
	Price   float64 // > 0
	Entries []Entry // sorted by Row
	Tag     int     // the Pricer's own name for it
}

// Pricer returns the column with the highest ratio of value to price, where
// the value of a column is Σ amount·values[row]. It is exact: no column has a
// higher ratio.
type Pricer func(values []float64) Column

// Solution is what the method found.
type Solution struct {
	Values []float64 // per row, ≥ 0, feasible for the dual: no column's value exceeds its price
	Bound  float64   // demand·Values: no cover is cheaper
	Used   []Use     // the columns of the last basis in use
	Steps  int
}

// Use is a column with the amount of it bought.
type Use struct {
	Column Column
	Amount float64
}

// tolerance is the relative violation of a dual constraint that counts as none.
const tolerance = 1e-7

// Cover solves the program, taking at most steps pivots. The demand must be
// positive in every row, and every row coverable.
func Cover(demand []float64, price Pricer, steps int) Solution {
	t := newTableau(demand, price)
	n := 0
	for ; n < steps; n++ {
		values := t.values()
		if row := mostNegative(values); row >= 0 {
			t.enter(Column{Entries: []Entry{{row, -1}}, Tag: surplus})
			continue
		}
		c := price(values)
		if value(c, values) <= c.Price*(1+tolerance) {
			break
		}
		t.enter(c)
	}
	return t.solution(price, n)
}

func value(c Column, values []float64) float64 {
	sum := 0.0
	for _, e := range c.Entries {
		sum += e.Amount * values[e.Row]
	}
	return sum
}

// mostNegative returns the row whose value is below zero by most: its surplus
// column may enter the basis.
func mostNegative(values []float64) int {
	row, least := -1, -1e-9*slices.Max(values)
	for i, v := range values {
		if v < least {
			row, least = i, v
		}
	}
	return row
}
