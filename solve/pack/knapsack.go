package pack

import (
	"cmp"
	"slices"
)

// fillTries is how many mixes of resource prices fill tries.
const fillTries = 4

// worthLimit returns what the room of candidate c is worth at most at the
// market's values, and leaves the prices of resources that say so in shadow.
// When the prices of last time show that it is not worth more than enough, it
// is content with them.
func (m *market) worthLimit(c int, enough float64) float64 {
	m.load(c)
	if limit := m.sack.Bound(m.shadow[c]); limit <= enough {
		return limit
	}
	return m.sack.Relax(m.shadow[c])
}

// load puts the room of candidate c and the rows that fit it into the sack.
func (m *market) load(c int) {
	m.sack.Reset(m.space[c])
	for i, row := range m.rows[c] {
		if u := min(m.fits[c][i], m.count[row]); u > 0 && m.values[row] > 0 {
			m.sack.Add(m.values[row], float64(u), m.weight[row])
		}
	}
}

// fill looks for a pattern of high worth for one node of candidate c at the
// market's values. It packs greedily by worth per price of the request, at the
// prices in shadow, and then at mixes that favour what ran out.
func (m *market) fill(c int) ([]portion, float64) {
	room := m.room[c]
	price := m.scratch.price[:len(room)]
	dearest := 0.0
	for _, p := range m.shadow[c] {
		dearest = max(dearest, p)
	}
	for r, p := range m.shadow[c] {
		price[r] = p + 1e-6*dearest // what costs nothing still breaks ties
	}
	var best []portion
	most := 0.0
	for range fillTries {
		free := append(m.scratch.free[:0], room...)
		take := m.pour(c, price, free)
		if w := worth(take, m.values); w > most*(1+1e-12) {
			best, most = slices.Clone(take), w
		}
		for r, v := range room {
			if v > 0 {
				price[r] *= 1 - 0.9*float64(free[r])/float64(v)
			}
		}
	}
	return best, most
}

// scratch is room to work in, reused to save allocations.
type scratch struct {
	price []float64
	free  []int64
	dense []density
	take  []portion
}

// density is the worth of a row's pods for the price of their request.
type density struct {
	row   int
	value float64
}

// pour packs rows into free in order of density, as many pods of each as fit.
// The result is good until pour is called again.
func (m *market) pour(c int, price []float64, free []int64) []portion {
	items := m.scratch.dense[:0]
	for _, row := range m.rows[c] {
		if m.values[row] <= 0 || m.count[row] == 0 {
			continue
		}
		load := 1e-300
		for r, v := range m.weight[row] {
			load += price[r] * v
		}
		items = append(items, density{row, m.values[row] / load})
	}
	m.scratch.dense = items
	slices.SortFunc(items, func(a, b density) int {
		if a.value != b.value {
			return cmp.Compare(b.value, a.value)
		}
		return cmp.Compare(a.row, b.row)
	})
	take := m.scratch.take[:0]
	for _, it := range items {
		n := min(whole(free, m.request[it.row]), m.count[it.row])
		if most := m.demands[it.row].most; most > 0 {
			n = min(n, most)
		}
		if n == 0 || slices.ContainsFunc(take, func(t portion) bool { return m.parts(it.row, t.demand) }) {
			continue
		}
		take = append(take, portion{demand: it.row, pods: n})
		if !m.shares(c, take) {
			take = take[:len(take)-1]
			continue
		}
		for r, v := range m.request[it.row] {
			free[r] -= v * int64(n)
		}
	}
	m.scratch.take = take
	return take
}
