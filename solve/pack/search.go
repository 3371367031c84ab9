package pack

import "slices"

// searchNodes bounds the exact search of one candidate, in branches.
const searchNodes = 600

// search looks for the most worthy patterns of candidate c by branch and bound.
// It returns those it came upon that are worth more than the price, and an
// upper bound on the worth of any pattern of the candidate.
//
// The bound is the linear relaxation, tightened for the room left at every
// branch, because large pods, which are worth most, rarely come out even and
// leave room that only cheap ones can use. The search stops where the bound is
// no more than the price, which is all the proof needs.
func (m *market) search(c int) (found [][]portion, limit float64) {
	s := &searcher{market: m, enough: m.candidates[c].price * (1 + keen/2)}
	items := make([]item, 0, len(m.rows[c]))
	for i, row := range m.rows[c] {
		if u := min(m.fits[c][i], m.count[row]); u > 0 && m.values[row] > 0 {
			items = append(items, item{row, u})
		}
	}
	s.branch(items, m.room[c], m.shadow[c], 0)
	return s.found, max(s.most, s.limit)
}

// searchKeeps is how many patterns a search keeps: the last of them are the
// best, as each must beat the one before.
const searchKeeps = 6

// searcher is one branch-and-bound run.
type searcher struct {
	*market
	enough float64 // branches that can't get above this are not followed
	taken  []portion
	nodes  int

	found [][]portion
	most  float64
	limit float64 // highest bound among branches not followed to their end
}

// item is a row with how many of its pods the room could take at most.
type item struct{ row, most int }

// branch decides how many pods of the most worthy item to take, most first.
// The prices are those of the branch above, to start from.
func (s *searcher) branch(items []item, room []int64, price []float64, worth float64) {
	if worth > s.most {
		s.most = worth
		if worth > s.enough {
			if len(s.found) == searchKeeps {
				s.found = s.found[1:]
			}
			s.found = append(s.found, slices.Clone(s.taken))
		}
	}
	if len(items) == 0 {
		return
	}
	s.nodes++
	aim := max(s.enough, s.most)
	bound, price := s.bound(items, room, price, aim-worth)
	bound += worth
	if bound <= aim || s.nodes > searchNodes {
		s.limit = max(s.limit, bound)
		return
	}
	first := s.mostWorthy(items, price)
	it := items[first]
	rest := slices.Delete(slices.Clone(items), first, first+1)
	left := slices.Clone(room)
	for r, v := range s.request[it.row] {
		left[r] -= v * int64(it.most)
	}
	for n := it.most; n >= 0; n-- {
		fit := s.fitting(rest, left)
		if n > 0 {
			s.taken = append(s.taken, portion{demand: it.row, pods: n})
			fit = slices.DeleteFunc(fit, func(o item) bool { return s.parts(it.row, o.row) })
		}
		s.branch(fit, left, price, worth+float64(n)*s.values[it.row])
		if n > 0 {
			s.taken = s.taken[:len(s.taken)-1]
			for r, v := range s.request[it.row] {
				left[r] += v
			}
		}
	}
}

// bound returns what the items are worth at most in the room, with the prices
// that say so: those given, if they show that it is no more than enough.
func (s *searcher) bound(items []item, room []int64, price []float64, enough float64) (float64, []float64) {
	space := s.scratch.price[:len(room)]
	for r, v := range room {
		space[r] = float64(v) / s.unit[r]
	}
	s.sack.Reset(space)
	for _, it := range items {
		s.sack.Add(s.values[it.row], float64(it.most), s.weight[it.row])
	}
	if bound := s.sack.Bound(price); bound <= enough {
		return bound, price
	}
	price = make([]float64, len(room))
	return s.sack.Relax(price), price
}

// fitting returns the items of which the room takes at least one.
func (s *searcher) fitting(items []item, room []int64) []item {
	out := make([]item, 0, len(items))
	for _, it := range items {
		if n := min(it.most, whole(room, s.request[it.row])); n > 0 {
			out = append(out, item{it.row, n})
		}
	}
	return out
}

// mostWorthy returns the index of the item with the highest value for what it
// costs.
func (s *searcher) mostWorthy(items []item, price []float64) int {
	best, density := 0, 0.0
	for i, it := range items {
		load := 1e-9 * s.values[it.row]
		for r, v := range s.weight[it.row] {
			load += price[r] * v
		}
		if d := s.values[it.row] / load; d > density || (d == density && it.row < items[best].row) {
			best, density = i, d
		}
	}
	return best
}
