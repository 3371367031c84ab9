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
		if !used.Any(p.Offers) {
			continue
		}
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
	var out []candidate
	r := m.rivalsOf(all)
	for _, i := range order {
		if r.add(i) {
			out = append(out, all[i])
		}
	}
	return out
}

// rivals are candidates that are not dominated, as far as they are known, by what could be
// dominated by them.
type rivals struct {
	*market
	all    []candidate
	groups []*servers
	of     []int   // by candidate: its group
	taking [][]int // by class: the groups that serve it
}

// servers are candidates that serve the same classes.
type servers struct {
	serves fit.Bits
	wider  []*servers           // those that serve these classes and maybe more
	open   []*candidate         // what can dominate candidates of other pools
	others map[int][]*candidate // by pool: what can dominate those of its own only
}

func (m *market) rivalsOf(all []candidate) *rivals {
	r := &rivals{market: m, all: all, of: make([]int, len(all)), taking: make([][]int, len(m.classes))}
	known := map[string]int{}
	for i := range all {
		key := all[i].serves.Key()
		at, ok := known[key]
		if !ok {
			at = len(r.groups)
			known[key] = at
			r.groups = append(r.groups, &servers{serves: all[i].serves, others: map[int][]*candidate{}})
			for class := range all[i].serves.All() {
				r.taking[class] = append(r.taking[class], at)
			}
		}
		r.of[i] = at
	}
	for _, g := range r.groups {
		for _, at := range r.fewestTaking(g.serves) {
			m.budget.Spend(len(g.serves))
			if o := r.groups[at]; o.serves.Contains(g.serves) {
				g.wider = append(g.wider, o)
			}
		}
	}
	return r
}

// fewestTaking returns the groups that serve the class which fewest serve.
func (r *rivals) fewestTaking(classes fit.Bits) []int {
	var least []int
	for class := range classes.All() {
		if some := r.taking[class]; least == nil || len(some) < len(least) {
			least = some
		}
	}
	return least
}

// add adds a candidate that is no cheaper than those before. It reports false if one of
// these dominates it.
func (r *rivals) add(i int) bool {
	c, g := &r.all[i], r.groups[r.of[i]]
	for _, o := range g.wider {
		for _, some := range [][]*candidate{o.open, o.others[c.pool]} {
			r.budget.Spend(1 + len(some))
			if slices.ContainsFunc(some, func(a *candidate) bool { return r.dominates(a, c) }) {
				return false
			}
		}
	}
	if r.picky[c.pool] || len(r.limiting(c)) > 0 {
		g.others[c.pool] = append(g.others[c.pool], c)
	} else {
		g.open = append(g.open, c)
	}
	return true
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
	if a.pool != b.pool {
		return len(m.limiting(a)) == 0 && !m.picky[a.pool]
	}
	return !slices.ContainsFunc(m.limiting(a), func(r int) bool { return a.capacity.At(r) > b.capacity.At(r) })
}

// limiting returns the resources that limits of its pool bound the candidate's nodes by. A
// proof knows only whether they allow one.
func (m *market) limiting(c *candidate) []int {
	if m.proving && !m.unaffordable(*c) {
		return nil
	}
	return m.limits.pools[c.pool].resources
}

// unaffordable reports whether the limits of its pool leave no room for even
// one node of the candidate.
func (m *market) unaffordable(c candidate) bool {
	return m.limits.allow(c.pool, c.capacity, 1) == 0
}
