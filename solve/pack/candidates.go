// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"karpenter/model"
	"karpenter/solve/fit"
)

// candidates returns the offers of the tier's pools that at least one class of the
// demands could use, without those that another offer dominates, cheapest first.
func (m *market) candidates(open []*demand) []candidate {
	used, asking := fit.NewBits(len(m.catalogue.Offers)), fit.NewBits(len(m.classes))
	for _, d := range open {
		asking.Set(d.class)
	}
	for class := range asking.All() {
		used.Add(m.classes[class])
	}
	var all []candidate
	known := map[string]bool{}
	for pool := m.tier.From; pool < m.tier.To; pool++ {
		p := &m.catalogue.Pools[pool]
		if m.strict(pool) {
			all = m.varied(pool, p.Usable.Less(m.reservations.offers), all)
			continue
		}
		for i := p.Types.From; i < p.Types.To; i++ {
			row := &m.catalogue.Types[i]
			if used.Any(row.Offers) && (model.Resources{}).Fits(row.Free) { // else its daemons alone ask for more than it has
				before := len(all)
				all = m.ofType(row, asking, all)
				if m.proving {
					all = append(all[:before], m.unlike(all[before:], known)...)
				}
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].price, all[b].price), cmp.Compare(all[a].offer, all[b].offer))
	})
	var kept []*candidate
	for _, i := range order {
		m.budget.Spend(len(kept))
		if !slices.ContainsFunc(kept, func(o *candidate) bool { return m.dominates(o, &all[i]) }) {
			kept = append(kept, &all[i])
		}
	}
	out := make([]candidate, len(kept))
	for i, c := range kept {
		out[i] = *c
	}
	return out
}

// unlike moves to the front, and returns, those of the candidates that limits allow and
// of which no equal one, but for its pool, is known; those of pools that tell pods apart
// are equal to none.
func (m *market) unlike(some []candidate, known map[string]bool) []candidate {
	return slices.DeleteFunc(some, func(c candidate) bool {
		if m.unaffordable(c) {
			return true
		}
		if m.picky[c.pool] {
			return false
		}
		key := strconv.AppendFloat([]byte(c.serves.Key()), c.price, 'g', -1, 64)
		for _, v := range c.room {
			key = binary.AppendVarint(key, v)
		}
		if known[string(key)] {
			return true
		}
		known[string(key)] = true
		return false
	})
}

// ofType adds the offers of one type that some of the classes could use to out,
// without those that cost no less than another of them which serves the same.
func (m *market) ofType(row *fit.TypeRow, asking fit.Bits, out []candidate) []candidate {
	first := len(out)
	serves := fit.NewBits(len(m.classes))
	for i := row.Offers.From; i < row.Offers.To; i++ {
		if m.reservations.offers.Has(i) {
			continue
		}
		clear(serves)
		for class := range asking.All() {
			if m.classes[class].Has(i) {
				serves.Set(class)
			}
		}
		if serves.Empty() {
			continue
		}
		price := m.charged(m.catalogue.Offers[i].Price)
		same := slices.IndexFunc(out[first:], func(o candidate) bool { return slices.Equal(o.serves, serves) })
		switch {
		case same < 0:
			out = append(out, candidate{
				offer: i, pool: row.Pool, price: price, free: row.Free, room: m.roomFor(row.Free), serves: slices.Clone(serves), capacity: row.Capacity,
			})
		case price < out[first+same].price:
			out[first+same].offer, out[first+same].price = i, price
		}
	}
	return out
}

// roomFor returns what is free of the resources anyone requests; for one pod, more
// than it requests is no better.
func (m *market) roomFor(free model.Resources) []int64 {
	out := make([]int64, len(m.wanted))
	for i, r := range m.wanted {
		out[i] = free.At(r)
		if m.one != nil {
			out[i] = min(out[i], m.one.Shape.Requests.At(r))
		}
	}
	return out
}

// dominates reports whether a, which is no more expensive than b, can stand in for b
// in every pattern: it has the room, serves as many classes, and takes no more
// of a pool's limits.
func (m *market) dominates(a, b *candidate) bool {
	for i, v := range a.room {
		if b.room[i] > v {
			return false
		}
	}
	if !a.serves.Contains(b.serves) {
		return false
	}
	limited := m.limits.pools[a.pool].resources
	if m.proving && len(limited) > 0 && !m.unaffordable(*a) {
		limited = nil
	}
	if a.pool != b.pool {
		return len(limited) == 0 && !m.picky[a.pool]
	}
	return !slices.ContainsFunc(limited, func(r int) bool { return a.capacity.At(r) > b.capacity.At(r) })
}

// unaffordable reports whether the limits of its pool leave no room for even
// one node of the candidate.
func (m *market) unaffordable(c candidate) bool {
	return m.limits.allow(c.pool, c.capacity, 1) == 0
}
