// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
)

// exact is equal for equal requirements.
func exact(r model.Requirement) string { return r.String() + "\x00" + strings.Join(r.Values, "\x00") }

// demanding reports whether some pool of the range has minValues.
func (q *problem) demanding(pools fit.Range) bool {
	return slices.ContainsFunc(q.floors[pools.From:pools.To], func(f []floor) bool { return len(f) > 0 })
}

// varietyOf returns what launches as one of the offers, of one pool, may list.
// The demands are those of the pods.
func (q *problem) varietyOf(pool int, offers fit.Bits, demands model.Requirements) *variety {
	allowed := make([]model.Requirement, len(q.floors[pool]))
	key := offers.Key()
	for i, f := range q.floors[pool] {
		allowed[i], _ = q.catalogue.Pools[pool].Requirements.Get(f.key)
		if asked, ok := demands.Get(f.key); ok {
			allowed[i] = allowed[i].Intersect(asked)
		}
		key += exact(allowed[i])
	}
	if v, ok := q.varieties[key]; ok {
		return v
	}
	v := &variety{floors: q.floors[pool], most: q.policy.MaxTypes, menu: q.menu(q.catalogue.Pools[pool].Offers.From, fit.NewOfferSet(offers))}
	v.names, v.spans = make([][]string, len(v.floors)), make([]int, len(v.floors))
	for _, c := range v.choices {
		v.values = append(v.values, q.valuesOf(v, c, allowed))
	}
	for _, names := range v.names {
		v.first = append(v.first, len(v.seen))
		v.seen = append(v.seen, make([]int, len(names))...)
	}
	q.varieties[key] = v
	return v
}

// valuesOf returns the values a choice stands for. Of capacity types those
// count that can be had, as a launch lists no others.
func (q *problem) valuesOf(v *variety, c choice, allowed []model.Requirement) []value {
	var out []value
	for i, f := range v.floors {
		var names []string
		if f.key == model.LabelCapacityType {
			for j, name := range v.types {
				if c.types&(1<<j) != 0 {
					names = append(names, name)
				}
			}
		} else if r, ok := q.catalogue.Types[c.row].Requirements.Get(f.key); ok && !r.Complement {
			names = r.Values
		}
		for _, name := range names {
			if !allowed[i].Has(name) {
				continue
			}
			at := slices.Index(v.names[i], name)
			if at < 0 {
				at, v.names[i] = len(v.names[i]), append(v.names[i], name)
			}
			out = append(out, value{i, at})
		}
	}
	return out
}

// fitting returns the choices of v with room for the requests and, as far as
// the pool has limits, no more than this capacity; nil = any.
func (q *problem) fitting(v *variety, requests, capacity model.Resources) []int {
	var out []int
	for i, c := range v.choices {
		row := &q.catalogue.Types[c.row]
		if requests.Fits(row.Free) && (capacity == nil || q.covered(row.Pool, capacity, row.Capacity)) {
			out = append(out, i)
		}
	}
	return out
}

// spanning returns d without what is too little for a launch with one pod of
// it to span what its pool demands.
func (q *problem) spanning(d *fit.Demand) *fit.Demand {
	if q.policy.RelaxMinValues || !q.demanding(fit.Range{To: len(q.floors)}) {
		return d
	}
	return q.catalogue.Narrow(d, func(demands model.Requirements, offers fit.Bits) fit.Bits {
		for pool, floors := range q.floors {
			if len(floors) == 0 {
				continue
			}
			for _, sort := range q.sorts(q.catalogue.Pools[pool].Usable.AndBits(offers)) {
				v := q.varietyOf(pool, sort, demands)
				if !v.enough(q.fitting(v, d.Shape.Requests, nil)) {
					offers = offers.Less(sort)
				}
			}
		}
		return offers
	})
}

// carries returns how many pods of the request, at most limit, a node launched
// from the offer takes beside what is taken, if pods may use these offers.
func (q *problem) carries(offer int, offers fit.OfferSet, taken, request model.Resources, limit int) int {
	row := &q.catalogue.Types[q.catalogue.Offers[offer].Type]
	n := fit.RoomBeside(taken, row.Free, request, limit)
	if n == 0 || len(q.floors[row.Pool]) == 0 {
		return n
	}
	v := q.varietyOf(row.Pool, q.alike(offer, offers.And(q.catalogue.Pools[row.Pool].Usable).Bits()), nil)
	for n > 0 && !v.enough(q.fitting(v, taken.Plus(request.Times(int64(n))), nil)) {
		n--
	}
	return n
}

// menu returns the type rows that can be launched as one of the offers in the
// pool of the given one.
func (q *problem) menu(offer int, offers fit.OfferSet) *menu {
	pool := q.pool(offer)
	out := &menu{}
	for i := range q.catalogue.Offers[pool.Offers.From:pool.Offers.To] {
		if ct := q.catalogue.Offers[pool.Offers.From+i].CapacityType; !slices.Contains(out.types, ct) {
			out.types = append(out.types, ct)
		}
	}
	slices.Sort(out.types)
	for i := pool.Types.From; i < pool.Types.To; i++ {
		row := &q.catalogue.Types[i]
		c := choice{row: i, offer: -1}
		for j := row.Offers.From; j < row.Offers.To; j++ {
			if !offers.Has(j) {
				continue
			}
			o := &q.catalogue.Offers[j]
			c.types |= 1 << slices.Index(out.types, o.CapacityType)
			if c.offer < 0 || o.Price < c.price {
				c.offer, c.price = j, o.Price
			}
		}
		if c.offer >= 0 {
			out.choices = append(out.choices, c)
		}
	}
	slices.SortStableFunc(out.choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(q.catalogue.Types[a.row].Name, q.catalogue.Types[b.row].Name))
	})
	return out
}
