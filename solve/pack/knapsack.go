package pack

import (
	"cmp"
	"slices"
)

// fill looks for a pattern of high worth for one node of candidate c at the
// market's values. It packs greedily by worth per weighted request, then
// shifts weight to the resources that ran out and tries again.
func (m *market) fill(c int) ([]portion, float64) {
	room := m.room[c]
	weight := make([]float64, len(room))
	for r, v := range room {
		if v > 0 {
			weight[r] = 1 / float64(v)
		}
	}
	var best []portion
	most := 0.0
	for range 4 {
		take, free := m.pour(c, weight)
		if w := m.worth(take); w > most*(1+1e-12) {
			best, most = take, w
		}
		for r, v := range room {
			if v > 0 {
				used := 1 - float64(free[r])/float64(v)
				weight[r] *= 0.02 + used*used*used
			}
		}
	}
	return best, most
}

// pour packs rows in order of worth per weighted request, as many of each as
// fit, and returns what is left free.
func (m *market) pour(c int, weight []float64) ([]portion, []int64) {
	type item struct {
		row     int
		density float64
	}
	items := make([]item, 0, len(m.rows[c]))
	for _, row := range m.rows[c] {
		if m.values[row] <= 0 || m.count[row] == 0 {
			continue
		}
		load := 1e-12
		for r, v := range m.request[row] {
			load += weight[r] * float64(v)
		}
		items = append(items, item{row, m.values[row] / load})
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.density, a.density), cmp.Compare(a.row, b.row))
	})
	free := slices.Clone(m.room[c])
	var take []portion
	for _, it := range items {
		n := min(whole(free, m.request[it.row]), m.count[it.row])
		if n == 0 || !m.shares(c, append(take, portion{demand: it.row})) {
			continue
		}
		for r, v := range m.request[it.row] {
			free[r] -= v * int64(n)
		}
		take = append(take, portion{demand: it.row, pods: n})
	}
	return take, free
}
