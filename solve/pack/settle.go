package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// lesson names pods of a kind in a cell, or in all together.
type lesson struct {
	kind int
	cell string
}

// everywhere stands for all cells.
const everywhere = ""

// settle decides where the pods of d go as far as rules between pods ask: on
// which nodes there are, and in which domains new nodes are bought for the
// rest, which becomes demands of its own. Pods that the rules leave no place
// are put aside.
//
// Pods are settled one after the other as the scheduler would place them, each
// in the best of the domains that are open to it at that time.
func (k *Packer) settle(d *demand) {
	d.left, d.stuck = append(d.left, d.stuck...), nil
	if len(d.left) == 0 {
		return
	}
	if k.topology.Joins(d.kind) {
		k.join(d)
		return
	}
	if len(k.topology.Pinned(d.kind)) == 0 {
		k.fillNodes(d)
		return
	}
	cells := k.cellsOf(d, k.topology.Pinned(d.kind))
	open := places(cells)
	if k.wary[d.kind] {
		open = append(open, k.nearby(d)...)
	}
	k.topology.Buyable(d.kind, open)
	buyable, known := k.learned[lesson{d.kind, everywhere}]
	for left := len(d.left); left > 0; left-- {
		c := k.next(d, cells, left)
		if c == nil && k.recruit(d, cells, left) {
			c = k.next(d, cells, left)
		}
		if c == nil || c.room == 0 && known && buyable == 0 {
			break
		}
		if c.room == 0 {
			buyable--
		}
		k.take(d, c)
	}
	k.carryOut(d, cells)
	if len(d.stuck) > 0 && k.topology.Careless(d.kind) { // where others count it is their concern
		d.left, d.stuck = append(d.left, d.stuck...), nil
		k.fillNodes(d)
	}
}

// fillNodes puts pods of d on the nodes there are, first come first served.
func (k *Packer) fillNodes(d *demand) {
	for _, i := range k.liking(d) {
		if len(d.left) == 0 {
			return
		}
		n := &k.nodes[i]
		if room := k.room(d, n, len(d.left)); room > 0 {
			k.topology.Add(d.kind, k.topology.At(n.Site), n.Site, room)
			k.place(n, d, d.left[:room])
			d.left = d.left[room:]
		}
	}
}

// places returns the places of the cells in which nodes can be bought.
func places(cells []*cell) []topology.Place {
	var out []topology.Place
	for _, c := range cells {
		if c.tier != noTier {
			out = append(out, c.place)
		}
	}
	return out
}

// next returns the cell for the next pod of d, of which so many are left; nil
// when none is open to it. The first of pods that all follow it goes where all
// of them together are cheapest.
func (k *Packer) next(d *demand, cells []*cell, left int) *cell {
	starts := k.topology.Starts(d.kind)
	var best *cell
	for _, c := range cells {
		if !c.open() || !k.topology.Allows(d.kind, c.place) {
			continue
		}
		if best == nil || starts && cheaperTogether(c, best, left) || !starts && k.byPreference(d, c, best) < 0 {
			best = c
		}
	}
	return best
}

func cheaperTogether(a, b *cell, pods int) bool {
	homelessA, tierA, priceA := a.together(pods)
	homelessB, tierB, priceB := b.together(pods)
	return cmp.Or(
		cmp.Compare(homelessA, homelessB), cmp.Compare(tierA, tierB), cmp.Compare(priceA, priceB), a.compareNames(b),
	) < 0
}

// take settles one pod of d for the cell.
func (k *Packer) take(d *demand, c *cell) {
	if c.room == 0 {
		c.bought++
		k.topology.Add(d.kind, c.place, -1, 1)
		return
	}
	i := slices.IndexFunc(c.rooms, func(n int) bool { return n > 0 })
	c.rooms[i]--
	c.placed[i]++
	c.room--
	site := k.nodes[c.rows[i]].Site
	k.topology.Add(d.kind, k.topology.At(site), site, 1)
}

// carryOut places what was settled for nodes there are, and makes demands of
// what is to be bought.
func (k *Packer) carryOut(d *demand, cells []*cell) {
	for _, c := range cells {
		for i, n := range c.placed {
			if n > 0 {
				k.place(&k.nodes[c.rows[i]], d, d.left[:n])
				d.left = d.left[n:]
			}
		}
	}
	for _, c := range cells {
		if c.bought > 0 {
			k.pin(d, c, d.left[:c.bought])
			d.left = d.left[c.bought:]
		}
	}
	d.left, d.stuck = nil, d.left
}

// pin makes a demand of pods of d that are bought nodes in the cell.
func (k *Packer) pin(d *demand, c *cell, pods []model.Pod) {
	shape := *d.Shape
	shape.Selector = shape.Selector.And(c.pins...)
	part := &demand{
		Demand: k.compile(model.Pending{Shape: &shape, Pods: pods}),
		kind:   d.kind, whole: d, cell: c, left: slices.Clone(pods),
	}
	part.firm = k.catalogue.Fits(part.Demand, fit.Range{To: len(k.catalogue.Offers)})
	k.demands = append(k.demands, part)
}

// recruit helps pods of d that have affinity to pods whose domain is not
// settled yet: it settles one of those for a cell that is open to d but for
// that, and reports whether it found one.
func (k *Packer) recruit(d *demand, cells []*cell, left int) bool {
	for _, target := range k.demands {
		if target.bundle != nil || len(target.left) == 0 || !k.wants(d, target) || k.settled(target, d) {
			continue
		}
		var best, theirs *cell
		for _, c := range k.cellsOf(target, k.jointKeys(d, target)) {
			i := slices.IndexFunc(cells, func(own *cell) bool { return own.id == placeID(c.place, k.topology.Pinned(d.kind)) && own.open() })
			if i < 0 || c.tier == noTier || !k.topology.WouldAllow(d.kind, c.place) {
				continue
			}
			if best == nil || cheaperTogether(cells[i], best, left) {
				best, theirs = cells[i], c
			}
		}
		if best != nil {
			pod := k.untie(target, target.left[0])[0]
			target.left = target.left[1:]
			k.topology.Add(pod.of.kind, theirs.place, -1, 1)
			k.pin(pod.of, theirs, []model.Pod{pod.pod})
			return true
		}
	}
	return false
}

// settled reports whether pods of the target count where d asks already.
func (k *Packer) settled(target, d *demand) bool {
	return target.cell != nil && !slices.ContainsFunc(k.topology.Pinned(d.kind), func(key int) bool { return len(target.cell.place[key]) != 1 })
}

// jointKeys returns the keys that either of the demands is tied by.
func (k *Packer) jointKeys(d, target *demand) []int {
	keys := slices.Clone(k.topology.Pinned(d.kind))
	for _, m := range target.parts() {
		keys = append(keys, k.topology.Pinned(m.of.kind)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// inOrder returns the demands in the order their pods are settled: hardest
// first, but those with affinity to pods of others after these.
func (k *Packer) inOrder() []*demand {
	var out, waiting []*demand
	for _, d := range k.demands {
		switch {
		case d.whole != nil:
		case k.topology.Follows(d.kind):
			waiting = append(waiting, d)
		default:
			out = append(out, d)
		}
	}
	for len(waiting) > 0 {
		i := max(0, slices.IndexFunc(waiting, func(d *demand) bool {
			return !slices.ContainsFunc(waiting, func(o *demand) bool { return o != d && k.topology.Wants(d.kind, o.kind) })
		}))
		out = append(out, waiting[i])
		waiting = slices.Delete(waiting, i, i+1)
	}
	return out
}

// takeBack returns what no node was bought for to the demands it is part of.
func (k *Packer) takeBack() {
	for _, part := range k.demands {
		switch {
		case part.whole == nil:
		case part.bundle != nil:
			for _, p := range part.left {
				k.release(part, p)
			}
			part.left = nil
		default:
			k.topology.Add(part.kind, part.cell.place, -1, -len(part.left))
			part.whole.stuck = append(part.whole.stuck, part.left...)
			part.short, part.left = len(part.left), nil
		}
	}
}
