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
		m.classes[class].AddTo(used)
	}
	var all []candidate
	known := map[string]bool{}
	for pool := m.tier.From; pool < m.tier.To; pool++ {
		p := &m.catalogue.Pools[pool]
		if !used.Any(p.Offers) {
			continue
		}
		if m.strict(pool) {
			all = m.varied(pool, p.Usable.Less(m.reservations.offers).Bits(), all)
			continue
		}
		own := fit.NewBits(len(m.classes))
		for class := range asking.All() {
			if m.classes[class].Any(p.Offers) {
				own.Set(class)
			}
		}
		for i := p.Types.From; i < p.Types.To; i++ {
			row := &m.catalogue.Types[i]
			if used.Any(row.Offers) && (model.Resources{}).Fits(row.Free) { // else its daemons alone ask for more than it has
				before := len(all)
				all = m.ofType(row, own, all)
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
	var out []candidate
	r := m.rivalsOf(all)
	for _, i := range order {
		if r.add(i) {
			out = append(out, all[i])
		}
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
func (m *market) ofType(row *fit.TypeRow, classes fit.Bits, out []candidate) []candidate {
	first := len(out)
	serves := fit.NewBits(len(m.classes))
	for i := row.Offers.From; i < row.Offers.To; i++ {
		if m.reservations.offers.Has(i) {
			continue
		}
		clear(serves)
		for class := range classes.All() {
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
