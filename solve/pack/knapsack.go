package pack

import (
	"cmp"
	"slices"
)

// fillTries is how many mixes of resource prices fill tries.
const fillTries = 6

// fill looks for a pattern of high worth for one node of candidate c at the
// market's values. It packs greedily by worth per price of the request, at the
// prices that bound the worth of the room best, and then at mixes that favour
// what ran out.
func (m *market) fill(c int) ([]portion, float64) {
	room := m.room[c]
	weight := m.shadow(c)
	items, free := make([]density, 0, len(m.rows[c])), make([]int64, len(room))
	var best []portion
	most := 0.0
	for try := range fillTries {
		copy(free, room)
		take := m.pour(c, weight, items, free)
		if w := m.worth(take); w > most*(1+1e-12) {
			best, most = take, w
		}
		for r, v := range room {
			if v > 0 {
				left := float64(free[r]) / float64(v)
				weight[r] *= 1 - 0.9*left
				if try == 0 {
					weight[r] += 1e-6 / float64(v)
				}
			}
		}
	}
	return best, most
}

// shadow returns prices of the resources of candidate c at which its room is
// worth little more than the best pattern: their relation says what is scarce.
func (m *market) shadow(c int) []float64 {
	var items []item
	room := make([]float64, len(m.room[c]))
	for r, v := range m.room[c] {
		room[r] = float64(v)
	}
	for i, row := range m.rows[c] {
		if u := min(m.fits[c][i], m.count[row]); u > 0 && m.values[row] > 0 {
			items = append(items, m.item(row, u))
		}
	}
	price := make([]float64, len(room))
	bound := tighten(items, room, price)
	for r, v := range room {
		if v > 0 {
			price[r] += 1e-3 * bound / v
		}
	}
	return price
}

// density is the worth of a row's pods for the weight of their request.
type density struct {
	row   int
	value float64
}

// pour packs rows into free in order of density, as many pods of each as fit.
// It uses items as scratch space.
func (m *market) pour(c int, weight []float64, items []density, free []int64) []portion {
	for _, row := range m.rows[c] {
		if m.values[row] <= 0 || m.count[row] == 0 {
			continue
		}
		load := 1e-12
		for r, v := range m.request[row] {
			load += weight[r] * float64(v)
		}
		items = append(items, density{row, m.values[row] / load})
	}
	slices.SortFunc(items, func(a, b density) int {
		if a.value != b.value {
			return cmp.Compare(b.value, a.value)
		}
		return cmp.Compare(a.row, b.row)
	})
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
	return take
}
