package lp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// listed prices against a fixed list of columns.
func listed(columns []Column) Pricer {
	return func(values []float64) Column {
		best := columns[0]
		for _, c := range columns[1:] {
			if value(c, values)*best.Price > value(best, values)*c.Price {
				best = c
			}
		}
		return best
	}
}

func TestCover(t *testing.T) {
	for _, c := range []struct {
		name    string
		demand  []float64
		columns []Column
		want    float64
	}{
		{"one row", []float64{10}, []Column{{Price: 3, Entries: []Entry{{0, 4}}}, {Price: 1, Entries: []Entry{{0, 1}}, Tag: 1}}, 7.5},
		{"two rows shared", []float64{4, 4}, []Column{
			{Price: 1, Entries: []Entry{{0, 1}}}, {Price: 1, Entries: []Entry{{1, 1}}, Tag: 1},
			{Price: 1.5, Entries: []Entry{{0, 1}, {1, 1}}, Tag: 2}}, 6},
		{"surplus", []float64{1, 10}, []Column{
			{Price: 2, Entries: []Entry{{0, 5}, {1, 5}}}, {Price: 9, Entries: []Entry{{1, 1}}, Tag: 1}}, 4},
	} {
		s := Cover(c.demand, listed(c.columns), 100)
		if math.Abs(s.Bound-c.want) > 1e-6 {
			t.Errorf("%s: bound %v, want %v", c.name, s.Bound, c.want)
		}
	}
}

// TestBoundHolds checks on random programs that the values are dual-feasible,
// that the columns in use cover the demand, and that at the end both agree.
func TestBoundHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		rows := 1 + rng.IntN(12)
		demand := make([]float64, rows)
		for i := range demand {
			demand[i] = 1 + 50*rng.Float64()
		}
		var columns []Column
		for i := range rows * 3 {
			c := Column{Price: 0.5 + rng.Float64(), Tag: i}
			for r := range rows {
				if r == i%rows || rng.IntN(3) == 0 {
					c.Entries = append(c.Entries, Entry{r, 0.1 + rng.Float64()})
				}
			}
			columns = append(columns, c)
		}
		for _, steps := range []int{0, 2, 10_000} {
			s := Cover(demand, listed(columns), steps)
			for _, c := range columns {
				if value(c, s.Values) > c.Price*(1+1e-6) {
					t.Fatalf("column %v is worth %v", c, value(c, s.Values))
				}
			}
			if steps < 10_000 {
				continue
			}
			cost, covered := 0.0, make([]float64, rows)
			for _, u := range s.Used {
				cost += u.Amount * u.Column.Price
				for _, e := range u.Column.Entries {
					covered[e.Row] += u.Amount * e.Amount
				}
			}
			for r := range demand {
				if covered[r] < demand[r]*(1-1e-6) {
					t.Fatalf("row %d: covered %v of %v", r, covered[r], demand[r])
				}
			}
			if cost > s.Bound*(1+1e-5) {
				t.Fatalf("cost %v above bound %v after %d steps", cost, s.Bound, s.Steps)
			}
		}
	}
}
