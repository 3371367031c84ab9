// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// In a pool with minValues a node must suit not one type but a list of them.
// So its candidates are boxes: a box is the room that all types of such a list
// have, at the price of one of them. Every list has its box, and of boxes that
// lie in each other only the largest matter.

// Bounds of the search for boxes. Where they are met, what is found stays
// usable, and nothing is proven about prices.
const (
	mostSelections = 64    // of the offers that several classes of demands share
	mostCounts     = 4_000 // of values, per selection
)

// selection is offers of a pool on which pods with these demands may run.
type selection struct {
	offers fit.Bits
	asked  model.Requirements
}

// boxer finds the candidates of one selection.
type boxer struct {
	*market
	selection
	*variety
	pool   int
	all    []int // choices that limits allow
	counts int
}

// varied adds the candidates of a pool with minValues, launched as one of these
// offers.
func (m *market) varied(pool int, as fit.Bits, out []candidate) []candidate {
	for _, s := range m.selections(pool, as) {
		x := &boxer{market: m, pool: pool, selection: s, variety: m.varietyOf(pool, s.offers, s.asked), counts: mostCounts}
		out = x.candidates(out)
	}
	return out
}

// selections returns which of the pool's offers each class of demands may use
// and which several of them have in common.
func (m *market) selections(pool int, as fit.Bits) []selection {
	var single, out []selection
	known := map[string]bool{}
	add := func(s selection) {
		key := s.offers.Key()
		for _, f := range m.floors[pool] {
			r, _ := s.asked.Get(f.key)
			key += exact(r)
		}
		if !s.offers.Empty() && !known[key] {
			known[key] = true
			out = append(out, s)
		}
	}
	for _, d := range m.exemplars {
		ways := 0
		for demands, offers := range d.Alternatives() {
			s := selection{offers.And(as), demands}
			if !s.offers.Empty() {
				ways++
				single = append(single, s)
			}
		}
		m.several = m.several || ways > 1
	}
	m.partial = m.partial || m.several // whichever of its terms a pod is launched under
	for _, s := range single {
		add(s)
	}
	for i := 0; i < len(out); i++ {
		for _, s := range single {
			if len(out) >= mostSelections {
				m.partial = true
				return out
			}
			add(selection{out[i].offers.And(s.offers), out[i].asked.And(s.asked...)})
		}
	}
	return out
}

func (x *boxer) candidates(out []candidate) []candidate {
	for i, c := range x.choices {
		row := &x.catalogue.Types[c.row]
		if (model.Resources{}).Fits(row.Free) && x.limits.allow(x.pool, row.Capacity, 1) > 0 {
			x.all = append(x.all, i)
		}
	}
	if x.one != nil && len(x.limits.pools[x.pool].resources) == 0 {
		return x.singles(out)
	}
	var tops []int
	for _, i := range x.all { // cheapest first
		if slices.ContainsFunc(tops, func(o int) bool { return x.exceeds(o, i) }) {
			continue
		}
		tops = append(tops, i)
		box := make([]int64, len(x.wanted))
		x.cut(i, 0, x.all, box, func() { out = x.candidate(i, box, out) })
	}
	if x.counts <= 0 {
		x.partial = true
		out = x.singles(out)
	}
	return out
}

// exceeds reports whether choice a, which is no more expensive than b, is at least as
// good.
func (x *boxer) exceeds(a, b int) bool {
	for r := range x.wanted {
		if x.room(a, r) < x.room(b, r) {
			return false
		}
	}
	return x.covered(x.pool, x.catalogue.Types[x.choices[b].row].Capacity, x.catalogue.Types[x.choices[a].row].Capacity)
}

// room returns what a choice has of the r-th resource wanted.
func (x *boxer) room(choice, r int) int64 {
	return x.catalogue.Types[x.choices[choice].row].Free.At(x.wanted[r])
}

// cut finds the largest boxes in the room of top: it settles what a box has of
// the r-th resource and those behind it, where all of among have at least what
// it has of those before. It reports whether it came out with all that top has.
func (x *boxer) cut(top, r int, among []int, box []int64, emit func()) bool {
	if r == len(x.wanted) {
		emit()
		return true
	}
	levels := []int64{x.room(top, r)}
	for _, c := range among {
		if v := x.room(c, r); v < levels[0] {
			levels = append(levels, v)
		}
	}
	slices.SortFunc(levels, func(a, b int64) int { return cmp.Compare(b, a) })
	for _, level := range slices.Compact(levels) {
		x.budget.Spend(len(among))
		if x.counts--; x.counts <= 0 {
			return false
		}
		in := slices.DeleteFunc(slices.Clone(among), func(c int) bool { return x.room(c, r) < level })
		if !x.enough(in) {
			continue
		}
		box[r] = level
		if x.cut(top, r+1, in, box, emit) {
			return level == levels[0]
		}
		if r == len(x.wanted)-1 {
			return false
		}
	}
	return false
}

// candidate adds the box in the room of a choice.
func (x *boxer) candidate(choice int, box []int64, out []candidate) []candidate {
	c := x.choices[choice]
	row := &x.catalogue.Types[c.row]
	offer, serves := x.anchor(c.offer)
	if serves.Empty() {
		return out
	}
	free := slices.Clone(row.Free)
	for r, position := range x.wanted {
		if position < len(free) {
			free[position] = box[r]
		}
	}
	return append(out, candidate{
		offer: offer, pool: x.pool, price: x.charged(c.price), free: free, room: slices.Clone(box),
		serves: serves, capacity: x.reserve(choice, box),
	})
}

// anchor returns the offer that nodes are launched from as far as that says under
// which of their terms pods run there, and the classes served: the one preferred
// or, since a pod runs under the first term that an offer meets, one of the
// selection with which more classes have all of it to choose from.
func (x *boxer) anchor(preferred int) (offer int, serves fit.Bits) {
	offer, serves = preferred, x.served(preferred)
	if !x.several {
		return offer, serves
	}
	for o := range x.offers.All() {
		if serves.Count() == len(x.exemplars) {
			break
		}
		if more := x.served(o); more.Count() > serves.Count() {
			offer, serves = o, more
		}
	}
	return offer, serves
}

// served returns the classes that can share a node launched from the offer
// without leaving less to choose from than the selection.
func (x *boxer) served(offer int) fit.Bits {
	out := fit.NewBits(len(x.exemplars))
	for class, d := range x.exemplars {
		if offers := d.OffersAt(offer); offers.Empty() || !offers.Bits().Contains(x.offers) {
			continue
		}
		narrows := false
		for i, f := range x.variety.floors {
			if r, ok := d.At(offer).Get(f.key); ok && f.key != model.LabelCapacityType {
				narrows = narrows || slices.ContainsFunc(x.names[i], func(name string) bool { return !r.Has(name) })
			}
		}
		if !narrows {
			out.Set(class)
		}
	}
	return out
}

// reserve returns the capacity to reserve for a node in the box: that of types
// enough to choose from, the choice among them, which take least of the limits.
func (x *boxer) reserve(choice int, box []int64) model.Resources {
	capacity := x.catalogue.Types[x.choices[choice].row].Capacity
	if len(x.limits.pools[x.pool].resources) == 0 {
		return capacity
	}
	in := slices.DeleteFunc(slices.Clone(x.all), func(c int) bool {
		return c == choice || !x.holds(c, box)
	})
	share := func(c int) float64 { return x.limits.share(x.pool, x.catalogue.Types[x.choices[c].row].Capacity) }
	slices.SortStableFunc(in, func(a, b int) int { return cmp.Compare(share(a), share(b)) })
	for _, c := range x.pick(append([]int{choice}, in...)) {
		capacity = capacity.Max(x.catalogue.Types[x.choices[c].row].Capacity)
	}
	return capacity
}

// holds reports whether the choice has the room of the box.
func (x *boxer) holds(choice int, box []int64) bool {
	for r, v := range box {
		if x.room(choice, r) < v {
			return false
		}
	}
	return true
}

// singles adds boxes that hold one pod each, so that where not all boxes were
// found no pod goes without.
func (x *boxer) singles(out []candidate) []candidate {
	demands := x.demands
	if x.one != nil {
		demands = []*demand{x.one}
	}
	for _, d := range demands {
		box := make([]int64, len(x.wanted))
		for r, position := range x.wanted {
			box[r] = d.Shape.Requests.At(position)
		}
		in := slices.DeleteFunc(slices.Clone(x.all), func(c int) bool { return !x.holds(c, box) })
		if len(d.left) > 0 && x.enough(in) {
			out = x.candidate(in[0], box, out)
		}
	}
	return out
}
