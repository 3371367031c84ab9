// SPDX-License-Identifier: Apache-2.0

package lp

import (
	"math"
	"math/rand/v2"
	"testing"

	"karpenter/solve/work"
)

// bound is what the values prove of a program with these columns: scaled until
// no column is worth more than its price, they are feasible for the dual.
func bound(demand, values []float64, columns []Column) float64 {
	ratio, sum := 1.0, 0.0
	for _, c := range columns {
		ratio = max(ratio, c.Worth(values)/c.Price)
	}
	for i, v := range values {
		sum += v * demand[i]
	}
	return sum / ratio
}

func TestSolve(t *testing.T) {
	for _, c := range []struct {
		name    string
		demand  []float64
		columns []Column
		want    float64
	}{
		{"one row", []float64{10}, []Column{{3, []Entry{{0, 4}}}, {1, []Entry{{0, 1}}}}, 7.5},
		{"two rows shared", []float64{4, 4}, []Column{{1, []Entry{{0, 1}}}, {1, []Entry{{1, 1}}}, {1.5, []Entry{{0, 1}, {1, 1}}}}, 6},
		{"surplus", []float64{1, 10}, []Column{{2, []Entry{{0, 5}, {1, 5}}}, {9, []Entry{{1, 1}}}}, 4},
	} {
		p := New(c.demand)
		for _, column := range c.columns {
			p.Add(column)
		}
		values := p.Solve(nil)
		if got := bound(c.demand, values, c.columns); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: bound %v, want %v", c.name, got, c.want)
		}
	}
}

// TestBoundHolds checks on random programs, with columns added as one goes and
// the method cut short at any step, that the bound never exceeds what a cover
// costs, and that at the end both agree.
func TestBoundHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		rows := 1 + rng.IntN(12)
		demand := make([]float64, rows)
		for i := range demand {
			demand[i] = 1 + 50*rng.Float64()
		}
		var columns []Column
		for i := range rows * 4 {
			c := Column{Price: 0.5 + rng.Float64()}
			for r := range rows {
				if r == i%rows || rng.IntN(3) == 0 {
					c.Entries = append(c.Entries, Entry{r, 0.1 + rng.Float64()})
				}
			}
			columns = append(columns, c)
		}
		bounds := map[int64]float64{}
		for _, steps := range []int64{3, 1 << 40} {
			p := New(demand)
			for _, c := range columns[:rows] {
				p.Add(c)
			}
			p.Solve(work.New(steps))
			for _, c := range columns[rows:] {
				p.Add(c)
			}
			values := p.Solve(work.New(steps))
			bounds[steps] = bound(demand, values, columns)
			if steps == 3 {
				continue
			}
			cost, covered := 0.0, make([]float64, rows)
			for i, amount := range p.Used {
				cost += amount * columns[i].Price
				for _, e := range columns[i].Entries {
					covered[e.Row] += amount * e.Amount
				}
			}
			for r := range demand {
				if covered[r] < demand[r]*(1-1e-6) {
					t.Fatalf("row %d: covered %v of %v", r, covered[r], demand[r])
				}
			}
			if gap := cost/bounds[steps] - 1; gap < -1e-9 || gap > 1e-6 {
				t.Fatalf("cost %v, bound %v", cost, bounds[steps])
			}
			if bounds[3] > cost*(1+1e-9) {
				t.Fatalf("bound %v after three steps, but a cover costs %v", bounds[3], cost)
			}
		}
	}
}
