// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// settle decides where the pods of d go as far as rules between pods ask: on
// which nodes there are, and in which domains new nodes are launched for the
// rest, which becomes demands of its own. Pods that the rules leave no place
// are put aside.
//
// Pods are settled one after the other as the scheduler would place them, each
// in the best of the domains that are open to it at that time.
func (s domains) settle(d *demand) {
	d.left, d.stuck = append(d.left, d.stuck...), nil
	if len(d.left) == 0 {
		return
	}
	if s.topology.Joins(d.kind) {
		s.join(d)
		return
	}
	if len(s.topology.Pinned(d.kind)) == 0 {
		s.fillNodes(d)
		return
	}
	cells := s.cellsOf(d, s.topology.Pinned(d.kind))
	open := places(cells)
	if s.known.wary[d.kind] {
		open = append(open, s.atlas.nearby(d.kind, d.Shape)...)
	}
	s.topology.Buyable(d.kind, open)
	buyable, known := s.known.most[lesson{kind: d.kind, all: true}]
	for left := len(d.left); left > 0; left-- {
		c := s.next(d, cells, left)
		if c == nil && s.recruit(d, cells, left) {
			c = s.next(d, cells, left)
		}
		if c == nil || c.room == 0 && known && buyable == 0 {
			break
		}
		if c.room == 0 {
			buyable--
		}
		s.take(d, c)
	}
	s.carryOut(d, cells)
	if len(d.stuck) > 0 && s.topology.Careless(d.kind) { // where others count it is their concern
		d.left, d.stuck = append(d.left, d.stuck...), nil
		s.fillNodes(d)
	}
}

// settleAll fills the nodes there are, hardest shape first, each on the
// first node that takes it. Demands that rules tie to a domain are settled for
// one on the way.
func (s domains) settleAll() {
	for _, d := range s.inOrder() {
		if s.overspends() {
			s.abandoned = whileWishing
			return
		}
		s.settle(d)
	}
}

// next returns the cell for the next pod of d, of which so many are left; nil
// when none is open to it. The first of pods that all follow it goes where all
// of them together are cheapest.
func (s domains) next(d *demand, cells []*cell, left int) *cell {
	starts := s.topology.Starts(d.kind)
	var best *cell
	for _, c := range cells {
		if !c.open() || !s.topology.Allows(d.kind, c.place) {
			continue
		}
		if best == nil || starts && s.cheaperTogether(c, best, left) || !starts && s.byPreference(d, c, best) < 0 {
			best = c
		}
	}
	return best
}

// take settles one pod of d for the cell.
func (s domains) take(d *demand, c *cell) {
	if c.room == 0 {
		c.bought++
		s.topology.Add(d.kind, c.place, -1, 1)
		return
	}
	i := slices.IndexFunc(c.rooms, func(n int) bool { return n > 0 })
	c.rooms[i]--
	c.placed[i]++
	c.room--
	site := s.nodes[c.rows[i]].Site
	s.topology.Add(d.kind, s.topology.At(site), site, 1)
}

// carryOut places what was settled for nodes there are, and makes demands of
// what is to be launched.
func (s domains) carryOut(d *demand, cells []*cell) {
	for _, c := range cells {
		for i, n := range c.placed {
			if n > 0 {
				s.place(&s.nodes[c.rows[i]], d, d.left[:n])
				d.left = d.left[n:]
			}
		}
	}
	for _, c := range cells {
		if c.bought > 0 {
			s.pin(d, c, d.left[:c.bought])
			d.left = d.left[c.bought:]
		}
	}
	d.left, d.stuck = nil, d.left
}

// pin makes a demand of pods of d that are given nodes in the cell.
func (s domains) pin(d *demand, c *cell, pods []model.Pod) {
	s.demands = append(s.demands, s.partOf(d, c.area, pods))
}

// partOf returns the demand of pods of d that are given nodes in the area.
func (q *problem) partOf(d *demand, a area, pods []model.Pod) *demand {
	shape := *d.Shape
	shape.Selector = shape.Selector.And(a.pins()...)
	part := &demand{
		Demand: q.compile(model.Pending{Shape: &shape, Pods: pods}),
		kind:   d.kind, whole: d, area: &a, left: slices.Clone(pods),
	}
	part.firm = q.catalogue.Fits(part.Demand, fit.Range{To: len(q.catalogue.Offers)})
	return part
}

// recruit helps pods of d that have affinity to pods whose domain is not
// settled yet: it settles one of those for a cell that is open to d but for
// that, and reports whether it found one.
func (s domains) recruit(d *demand, cells []*cell, left int) bool {
	if s.budget.Overdrawn() { // they have to wait for what is planned in the end
		return false
	}
	for _, target := range s.demands {
		if len(target.left) == 0 || !s.wants(d, target) || s.settled(target, d) {
			continue
		}
		var best, theirs *cell
		for _, c := range s.cellsOf(target, s.jointKeys(d, target)) {
			i := slices.IndexFunc(cells, func(own *cell) bool { return own.id == placeID(c.place, s.topology.Pinned(d.kind)) && own.open() })
			if i < 0 || c.tier == noTier || !s.topology.WouldAllow(d.kind, c.place) || target.bundle != nil && !s.narrows(c.place, target.area.place) {
				continue
			}
			if best == nil || s.cheaperTogether(cells[i], best, left) {
				best, theirs = cells[i], c
			}
		}
		if best != nil {
			pods := s.untie(target, target.left[0])
			target.left = target.left[1:]
			if target.bundle != nil {
				s.addBundle(s.compileBundle(theirs.area, target.bundle), theirs.area, target.bundle, pods)
				return true
			}
			s.topology.Add(pods[0].of.kind, theirs.place, -1, 1)
			s.pin(pods[0].of, theirs, []model.Pod{pods[0].pod})
			return true
		}
	}
	return false
}

// narrows reports whether the place is the same as the wider one in every key that this is
// settled for.
func (s domains) narrows(p, wider topology.Place) bool {
	for key := range s.topology.Keys {
		if len(wider[key]) > 0 && !slices.Equal(p[key], wider[key]) {
			return false
		}
	}
	return true
}

// settled reports whether pods of the target count where d asks already.
func (s domains) settled(target, d *demand) bool {
	return target.area != nil && !slices.ContainsFunc(s.topology.Pinned(d.kind), func(key int) bool { return len(target.area.place[key]) != 1 })
}

// takeBack returns what no node was launched for to the demands it is part of.
func (s domains) takeBack() {
	for _, part := range s.demands {
		switch {
		case part.whole == nil:
		case part.bundle != nil:
			for _, p := range part.left {
				s.release(part, p)
			}
			part.left = nil
		default:
			s.topology.Add(part.kind, part.area.place, -1, -len(part.left))
			part.whole.stuck = append(part.whole.stuck, part.left...)
			part.short, part.left = len(part.left), nil
		}
	}
}

// places returns the places of the cells in which nodes can be launched.
func places(cells []*cell) []topology.Place {
	var out []topology.Place
	for _, c := range cells {
		if c.tier != noTier {
			out = append(out, c.place)
		}
	}
	return out
}

// cheaperTogether reports whether so many pods are better off in the cell a.
func (s domains) cheaperTogether(a, b *cell, pods int) bool {
	homelessA, tierA, priceA := a.together(pods)
	homelessB, tierB, priceB := b.together(pods)
	return cmp.Or(
		cmp.Compare(homelessA, homelessB), cmp.Compare(tierA, tierB), s.outside(a)-s.outside(b), cmp.Compare(priceA, priceB), a.compareNames(b),
	) < 0
}

// outside is 1 for a cell outside the zone that all of them are to be in, if there is one.
func (s domains) outside(c *cell) int {
	if s.known.zone == "" || c.valueOf(model.LabelZone) == s.known.zone {
		return 0
	}
	return 1
}
