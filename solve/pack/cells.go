// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// domains is the phase that decides where pods go as far as rules between pods
// ask, and puts them on the nodes there are.
type domains struct{ *draft }

// cell is what a demand sees of a place: the nodes there that take its pods,
// and what a new node there costs it.
type cell struct {
	area

	tier  int     // position of the heaviest tier that offers nodes there; noTier = none does
	price float64 // of the part of the cheapest such node that one pod takes
	each  int     // pods such a node takes
	most  int     // pods that may be given nodes for

	rows   []int // of draft.nodes: as many as take all pods, or all
	rooms  []int // by rows: pods it still takes
	placed []int // by rows: pods settled for it
	room   int   // sum of rooms
	bought int   // pods settled for new nodes
}

const noTier = math.MaxInt

// What it takes to look at the places that a demand could go to, in steps.
const (
	stepsPerArea  = 512
	stepsPerOffer = 2
)

// cellsOf returns the places pods of d could go to, told apart by keys.
func (s domains) cellsOf(d *demand, keys []int) []*cell {
	var out []*cell
	index := map[string]*cell{}
	alternatives := d.Shape.Alternatives()
	areas := s.atlas.areas(keys)
	s.budget.Spend(stepsPerArea*len(areas) + stepsPerOffer*len(s.catalogue.Offers))
	sharers := s.sharers(d, len(areas))
	for _, a := range areas {
		if !slices.ContainsFunc(alternatives, a.suits) {
			continue
		}
		c := &cell{area: a, tier: noTier}
		s.quote(c, d, sharers)
		if len(s.nodes) > 0 {
			index[a.id] = c
		}
		out = append(out, c)
	}
	var id []byte
	for i := range s.liking(d) {
		n := &s.nodes[i]
		place := s.topology.At(n.Site)
		id = appendPlaceID(id[:0], place, keys)
		c := index[string(id)]
		if c != nil && c.room >= len(d.left) {
			continue
		}
		room := s.room(d, n, len(d.left))
		if room == 0 {
			continue
		}
		if c == nil {
			c = &cell{area: area{region: unlabelled, id: string(id), place: place}, tier: noTier}
			index[c.id] = c
			out = append(out, c)
		}
		c.rows, c.rooms, c.placed = append(c.rows, i), append(c.rooms, room), append(c.placed, 0)
		c.room += room
	}
	return slices.DeleteFunc(out, func(c *cell) bool { return c.room == 0 && c.tier == noTier })
}

// sharers estimates how many pods of a plan share the nodes in one of so many areas:
// all that rules let d have there first, or as many as are there when the pods are in
// all of them.
func (s domains) sharers(d *demand, areas int) int {
	return max(min(len(d.left), s.topology.Skew(d.kind)), s.toPlace/max(areas, 1), 1)
}

// quote sets what a new node in the cell would cost a pod of d, if so many share it.
func (s domains) quote(c *cell, d *demand, sharers int) {
	c.most = topology.Unbounded
	if most, ok := s.known.most[lesson{kind: d.kind, cell: c.name()}]; ok {
		c.most = most
	}
	if c.most == 0 {
		return
	}
	settled := s.settledFor(d, c)
	for o := range c.offers.Common(d.Offers) {
		if s.reservations.offers.Has(o) {
			continue
		}
		row := &s.catalogue.Types[s.catalogue.Offers[o].Type]
		tier := s.tierOf(row.Pool)
		if tier > c.tier { // and so are all that follow
			break
		}
		if !settled(o) {
			continue
		}
		room := fit.Room(row.Free, d.Shape.Requests, topology.Unbounded)
		if room == 0 || s.limits.allow(row.Pool, row.Capacity, 1) == 0 {
			continue
		}
		if price := float64(s.catalogue.Offers[o].Price) / float64(min(room, sharers)); tier < c.tier || price < c.price {
			c.tier, c.price, c.each = tier, price, min(room, s.topology.Most(d.kind))
		}
	}
	if c.tier == noTier {
		s.quotePrepaid(c, d)
	}
}

// quotePrepaid is quote for a cell where nothing can be had for d but from
// reservations.
func (s domains) quotePrepaid(c *cell, d *demand) {
	most := int64(0)
	for o := range c.offers.Common(d.Offers) {
		if !s.reservations.offers.Has(o) {
			continue
		}
		row, left := &s.catalogue.Types[s.catalogue.Offers[o].Type], s.prepaid[s.catalogue.Offers[o].ReservationID]
		room := fit.Room(row.Free, d.Shape.Requests, topology.Unbounded)
		tier := s.tierOf(row.Pool)
		if room == 0 || left <= 0 || tier > c.tier || s.limits.allow(row.Pool, row.Capacity, 1) == 0 {
			continue
		}
		if price := float64(s.catalogue.Offers[o].Price) / float64(room); tier < c.tier || price < c.price {
			c.tier, c.price, c.each = tier, price, min(room, s.topology.Most(d.kind))
		}
		most = max(most, min(left, topology.Unbounded)*int64(min(room, s.topology.Most(d.kind))))
	}
	c.most = int(min(int64(c.most), most))
}

// settledFor returns whether a pod of d can be given a node from an offer once
// the node is settled for the cell: whether what is left then spans what the
// pool demands.
func (s domains) settledFor(d *demand, c *cell) func(offer int) bool {
	if s.policy.RelaxMinValues || !s.demanding(fit.Range{To: len(s.floors)}) {
		return func(int) bool { return true }
	}
	pins := c.pins()
	pinned := s.catalogue.MatchAll(pins)
	type choices struct {
		pool, alternative int
	}
	known := map[choices]bool{}
	return func(offer int) bool {
		pool := s.poolOf(offer)
		if len(s.floors[pool]) == 0 {
			return true
		}
		at := choices{pool, d.Under(offer)}
		spans, ok := known[at]
		if !ok {
			v := s.varietyOf(pool, s.alike(offer, d.OffersAt(offer).And(s.catalogue.Pools[pool].Usable).AndBits(pinned)), d.At(offer).And(pins...))
			spans = v.enough(s.fitting(v, d.Shape.Requests, nil))
			known[at] = spans
		}
		return spans
	}
}

// byPreference orders cells for the next pod: room there is already before new
// nodes, heavy pools before light, cheap before expensive, nodes that others of the
// pods need anyway before more of them; then where fewest are.
func (s domains) byPreference(d *demand, a, b *cell) int {
	return cmp.Or(
		cmp.Compare(min(b.room, 1), min(a.room, 1)),
		cmp.Compare(a.effectiveTier(), b.effectiveTier()),
		cmp.Compare(a.effectivePrice(), b.effectivePrice()),
		cmp.Compare(b.begun(), a.begun()),
		cmp.Compare(s.topology.Count(d.kind, a.place), s.topology.Count(d.kind, b.place)),
		a.compareNames(b),
	)
}

// open reports whether the cell takes another pod, rules between pods not
// asked.
func (c *cell) open() bool { return c.room > 0 || c.tier != noTier && c.bought < c.most }

// begun is 1 when pods settled for the cell leave room on the last of its new
// nodes.
func (c *cell) begun() int {
	if c.room == 0 && c.each > 0 && c.bought%c.each > 0 {
		return 1
	}
	return 0
}

func (c *cell) effectiveTier() int {
	if c.room > 0 {
		return 0
	}
	return c.tier
}

func (c *cell) effectivePrice() float64 {
	if c.room > 0 {
		return 0
	}
	return c.price
}

// compareNames orders by the first node there is, then by the values of labels.
func (c *cell) compareNames(o *cell) int {
	if len(c.rows) > 0 && len(o.rows) > 0 {
		return cmp.Compare(c.rows[0], o.rows[0])
	}
	return slices.Compare(c.names, o.names)
}

// together is what it costs to have all of so many pods in the cell: pods that
// find no place there count for more than any price, and light pools for more
// than expensive nodes.
func (c *cell) together(pods int) (homeless, tier int, price float64) {
	buy := max(pods-c.room, 0)
	if buy == 0 {
		return 0, 0, 0
	}
	if c.tier == noTier {
		return buy, 0, 0
	}
	return max(buy-c.most, 0), c.tier, float64(min(buy, c.most)) * c.price
}

// jointKeys returns the keys that either of the demands is tied by.
func (s domains) jointKeys(d, target *demand) []int {
	keys := slices.Clone(s.topology.Pinned(d.kind))
	for _, m := range target.parts() {
		keys = append(keys, s.topology.Pinned(m.of.kind)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
