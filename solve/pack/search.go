package pack

import (
	"cmp"
	"slices"
)

// searchNodes bounds the exact search of one candidate, in branches.
const searchNodes = 300

// search looks for the most worthy pattern of candidate c by branch and bound.
// It returns the best pattern found, its worth, and an upper bound on the
// worth of any pattern of the candidate.
//
// The bound is Lagrangian: for any prices y ≥ 0 of the node's resources, a
// pattern a is worth Σ v·a ≤ y·room + Σ max(0, v_i − y·r_i)·u_i, where u_i is
// how many pods of row i could be taken at most. It is tightened for the room
// left at every branch, because large pods, which are worth most, rarely come
// out even and leave room that only cheap ones can use. The search stops where
// the bound is no more than the price, which is all the proof needs.
func (m *market) search(c int) (best []portion, worth, limit float64) {
	s := &searcher{market: m, enough: m.candidates[c].price * (1 + keen/2)}
	var items []item
	for i, row := range m.rows[c] {
		if u := min(m.fits[c][i], m.count[row]); u > 0 && m.values[row] > 0 {
			items = append(items, s.item(row, u))
		}
	}
	room := make([]float64, len(m.resources))
	for r, v := range m.room[c] {
		room[r] = float64(v)
	}
	price := make([]float64, len(room))
	s.branch(items, room, price, 0)
	return s.best, s.most, max(s.most, s.limit)
}

// searcher is one branch-and-bound run.
type searcher struct {
	*market
	enough float64 // branches that can't get above this are not followed
	taken  []portion
	nodes  int

	best  []portion
	most  float64
	limit float64 // highest bound among branches not followed to their end
}

// item is a row with how many of its pods the room could take at most.
type item struct {
	row     int
	most    float64
	value   float64
	request []float64
}

func (m *market) item(row, most int) item {
	it := item{row: row, most: float64(most), value: m.values[row]}
	for _, v := range m.request[row] {
		it.request = append(it.request, float64(v))
	}
	return it
}

// branch decides how many pods of the most worthy item to take, most first.
// The prices are those of the branch above, to start from.
func (s *searcher) branch(items []item, room, price []float64, worth float64) {
	if worth > s.most {
		s.most, s.best = worth, slices.Clone(s.taken)
	}
	if len(items) == 0 {
		return
	}
	price = slices.Clone(price)
	bound := worth + tighten(items, room, price)
	s.nodes++
	if bound <= max(s.enough, s.most) || s.nodes > searchNodes {
		s.limit = max(s.limit, bound)
		return
	}
	first := mostWorthy(items, price)
	it := items[first]
	rest := slices.Delete(slices.Clone(items), first, first+1)
	for n := it.most; n >= 0; n-- {
		left := slices.Clone(room)
		for r, v := range it.request {
			left[r] -= v * n
		}
		if n > 0 {
			s.taken = append(s.taken, portion{demand: it.row, pods: int(n)})
		}
		s.branch(fitting(rest, left), left, price, worth+n*it.value)
		if n > 0 {
			s.taken = s.taken[:len(s.taken)-1]
		}
	}
}

// fitting returns the items of which the room takes at least one.
func fitting(items []item, room []float64) []item {
	out := make([]item, 0, len(items))
	for _, it := range items {
		n := it.most
		for r, v := range it.request {
			if v > 0 {
				n = min(n, float64(int64(room[r]/v)))
			}
		}
		if it.most = n; n > 0 {
			out = append(out, it)
		}
	}
	return out
}

// mostWorthy returns the item with the highest value for what it costs.
func mostWorthy(items []item, price []float64) int {
	best, density := 0, 0.0
	for i, it := range items {
		load := 1e-9 * it.value
		for r, v := range it.request {
			load += price[r] * v
		}
		if d := it.value / load; d > density || (d == density && cmp.Less(it.row, items[best].row)) {
			best, density = i, d
		}
	}
	return best
}

// tighten moves price to where the Lagrangian bound is low, one resource at a
// time, and returns the bound there.
func tighten(items []item, room, price []float64) float64 {
	least := lagrange(items, room, price)
	for range 3 {
		before := least
		for r, v := range room {
			if v > 0 {
				least = along(items, room, price, r)
			}
		}
		if least > before*(1-1e-3) {
			break
		}
	}
	return least
}

// lagrange is the bound y·room + Σ max(0, v − y·r)·u at prices y.
func lagrange(items []item, room, y []float64) float64 {
	sum := 0.0
	for r, v := range room {
		sum += y[r] * v
	}
	for i := range items {
		gain := items[i].value
		for r, v := range items[i].request {
			gain -= y[r] * v
		}
		if gain > 0 {
			sum += gain * items[i].most
		}
	}
	return sum
}

// along moves y[r] to the least of the bound, which is convex and piecewise
// linear in it: the least is at a price where some item stops gaining, found
// by adding up demand from the item that would pay most.
func along(items []item, room, y []float64, r int) float64 {
	type bend struct{ at, amount float64 }
	bends := make([]bend, 0, len(items))
	for i := range items {
		it := &items[i]
		if it.request[r] == 0 {
			continue
		}
		gain := it.value
		for q, v := range it.request {
			if q != r {
				gain -= y[q] * v
			}
		}
		if gain > 0 {
			bends = append(bends, bend{gain / it.request[r], it.request[r] * it.most})
		}
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(b.at, a.at) })
	y[r] = 0
	demanded := 0.0
	for _, b := range bends {
		if demanded += b.amount; demanded > room[r] {
			y[r] = b.at
			break
		}
	}
	return lagrange(items, room, y)
}
