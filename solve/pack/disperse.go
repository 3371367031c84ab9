// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// AWS reclaims spot instances by spot pool, which is an instance type in a zone. So
// no more than a share of a workload is to be in one, or on one node, which is part
// of one. NodePools can ask for that of their vCPUs, too. disperse is the phase that
// launches new nodes in other spot pools, or several in place of one, as long as that
// costs little.

// Bounds of disperse.
const (
	dispersePasses = 8    // over the new nodes
	spotPairs      = 8    // pairs of them that two nodes in place of one are considered for
	spotSizes      = 4    // sizes of nodes that it is divided into, largest first
	mostParts      = 8    // nodes in place of one
	sizePremium    = 1.05 // how much more nodes of one of these sizes may cost
	spotTries      = 4    // ways to change a node that are tried, best first
	pricedCrowds   = 6    // crowds of one plan of which it is worked out what spreading them costs
)

// disperse changes the plan of the outcome so that less of a workload is in one spot
// pool than the policy says, and tells what still is. It reports whether it changed any.
func disperse(out *outcome) bool {
	x := out.draft
	if x.abandoned != inProgress || !slices.ContainsFunc(x.bins, func(b bin) bool { return x.spot(b.offer) }) {
		return false
	}
	before := x.mark()
	c := newDispersal(x)
	if !c.crowded() {
		x.rollback(before)
		return false
	}
	some, paid := c.spread(), x.priceOfBins()
	if some {
		c.pin()
		out.placeAgain()
	}
	out.plan.Crowds = c.remaining(paid)
	if !some {
		x.rollback(before)
	}
	return some
}

// spread changes new nodes, those first that cost least for what it achieves. It
// reports whether it changed any.
func (c *dispersal) spread() bool {
	some := false
	for range dispersePasses {
		var ways []way
		for i := range c.bins {
			if w, ok := c.best(i); ok {
				ways = append(ways, w)
			}
		}
		slices.SortStableFunc(ways, func(a, b way) int { return a.before(&b) })
		progress := false
		for _, w := range ways {
			if w, ok := c.best(w.bin); ok && c.take(w) {
				progress, some = true, true
			}
		}
		if !progress || !c.crowded() {
			break
		}
	}
	return some
}

// best returns the way to change a new node that costs least for what it achieves.
// The ways are kept until the node is changed, but for those that change other nodes.
func (c *dispersal) best(i int) (way, bool) {
	b := &c.bins[i]
	if c.work <= 0 || c.stay[i] || !c.spot(b.offer) || !slices.ContainsFunc(c.in(b), func(l int) bool {
		in := c.spotPoolOf(b.offer)
		return c.loads[l].in[in] > c.most(&c.loads[l], in)
	}) {
		return way{}, false
	}
	all, known := c.ways[i]
	if !known {
		all = append(c.others(i), c.parts(i)...)
		c.ways[i] = all
	}
	var ways []*way
	own := c.stakes(b)
	before := c.excessOf(own)
	for _, w := range slices.Concat(all, c.spills(i)) {
		if !c.affords(c.poolOf(b.offer), w.more) {
			continue
		}
		if w.less = before - c.excessAfter(own, w); w.less > 1e-9 {
			ways = append(ways, w)
		}
	}
	slices.SortStableFunc(ways, (*way).before)
	for _, w := range ways[:min(len(ways), spotTries)] {
		if c.finish(w); w.state == finished {
			return *w, true
		}
	}
	return way{}, false
}

// finish settles what the nodes are launched as, unless their pool does not allow that.
func (c *dispersal) finish(w *way) {
	if w.state != rough {
		return
	}
	w.state = refused
	var sum model.Resources
	b := &c.bins[w.bin]
	pool := c.poolOf(b.offer)
	if len(c.floors[pool]) > 0 && (len(w.by) > 1 || c.catalogue.Offers[w.by[0].offer].Type != c.catalogue.Offers[b.offer].Type) {
		return // another type is reserved for in limits
	}
	for i := range w.by {
		b, ok := c.boughtAs(w.by[i], w.by[i].offer)
		if !ok {
			return
		}
		w.by[i], sum = b, sum.Plus(b.capacity)
	}
	if c.limits.covers(pool, b.capacity, sum) {
		w.state = finished
	}
}

// affords reports whether so much more may be spent on nodes of the pool.
func (c *dispersal) affords(pool int, more model.Price) bool {
	return more <= 0 || more <= c.left && more <= c.own[pool]
}

// excessOf returns the excess of the loads that a new node with these stakes is part
// of.
func (c *dispersal) excessOf(own []stake) (sum float64) {
	for _, s := range own {
		if c.only < 0 || s.load == c.only {
			sum += c.excess(s.load)
		}
	}
	return sum
}

// excessAfter returns what the excess is if a new node with these stakes is changed.
func (c *dispersal) excessAfter(own []stake, w *way) float64 {
	c.countWay(w, own, 1)
	after := c.excessOf(own)
	c.countWay(w, own, -1)
	c.spend(2 * len(own) * (1 + len(w.by)))
	return after
}

// countWay counts the new nodes as they are if one with these stakes is changed, or
// with -1 as they were.
func (c *dispersal) countWay(w *way, own []stake, sign int64) {
	c.count(&c.bins[w.bin], own, -sign)
	for i := range w.by {
		c.count(&w.by[i], w.stakes[i], sign)
	}
	for i := range w.fills {
		f := &w.fills[i]
		c.count(&c.bins[f.bin], f.before, -sign)
		c.count(&f.as, f.after, sign)
	}
}

// others returns the ways to launch the node in another spot pool.
func (c *dispersal) others(i int) []*way {
	b := c.bins[i]
	var out []*way
	for _, o := range c.quotes(b) {
		if c.spotPoolOf(o) != c.spotPoolOf(b.offer) {
			out = append(out, c.way(i, []bin{b}, []int{o}))
		}
	}
	return out
}

// parts returns the ways to launch several nodes in place of one: two halves, or nodes
// of smaller sizes that are full, and one for the rest.
func (c *dispersal) parts(i int) []*way {
	b := c.bins[i]
	one, two := c.divide(b)
	if len(one.take) == 0 || len(two.take) == 0 {
		return nil
	}
	out := c.pairs(i, one, two)
	sizes := c.sizes(b)
	for largest := range min(len(sizes), spotSizes) {
		if by := c.change(b, sizes[largest:]); len(by) > 1 {
			if offers := c.unlike(by); offers != nil {
				out = append(out, c.way(i, by, offers))
			}
		}
	}
	return out
}

// sizes returns what smaller types have free of which as many as it takes for the
// pods of b cost little more than b, as spot nodes; the largest first.
func (c *dispersal) sizes(b bin) []model.Resources {
	type size struct {
		free  model.Resources
		full  float64 // how many it takes
		offer int
	}
	requests, price := c.podRequests(b), float64(c.catalogue.Offers[b.offer].Price)
	b.within, b.zone = nil, ""
	var all []size
	offers, looks := c.offersOf(b), 0
	for _, o := range c.cheapest(c.poolOf(b.offer)).offers {
		looks++
		is := &c.catalogue.Offers[o]
		if float64(is.Price) > price*sizePremium {
			break
		}
		free := c.catalogue.Types[is.Type].Free
		if full := part(requests, free); offers.Has(o) && full > 1 && full <= mostParts && float64(is.Price)*full <= price*sizePremium {
			all = append(all, size{free, full, o})
		}
	}
	c.spend(looks)
	slices.SortFunc(all, func(x, y size) int { return cmp.Or(cmp.Compare(x.full, y.full), cmp.Compare(x.offer, y.offer)) })
	var out []model.Resources
	for i, x := range all {
		if i == 0 || x.full > all[i-1].full {
			out = append(out, x.free)
		}
	}
	return out
}

// change divides the pods of a new node into nodes that are full: as many as there
// are of the largest size, then of the next, and one for the rest. It returns nil if
// those are too many.
func (c *dispersal) change(b bin, sizes []model.Resources) []bin {
	var out []bin
	for rest := b; ; {
		if len(out) == mostParts {
			return nil
		}
		for len(sizes) > 0 && c.podRequests(rest).Fits(sizes[0]) {
			sizes = sizes[1:]
		}
		if len(sizes) == 0 {
			return append(out, rest)
		}
		full, more := c.upTo(rest, sizes[0])
		if len(full.take) == 0 || len(more.take) == 0 {
			return append(out, rest)
		}
		out, rest = append(out, full), more
	}
}

// unlike returns the cheapest offers for the nodes, each in a spot pool of its own as
// far as there are that many; nil = there is none for one of them.
func (c *dispersal) unlike(by []bin) []int {
	var out []int
	used := map[int]bool{}
	for _, b := range by {
		quotes := c.quotes(b)
		if len(quotes) == 0 {
			return nil
		}
		at := max(0, slices.IndexFunc(quotes, func(o int) bool { return !used[c.spotPoolOf(o)] }))
		used[c.spotPoolOf(quotes[at])] = true
		out = append(out, quotes[at])
	}
	return out
}

// pairs returns the cheapest ways to launch two nodes with these pods in place of one,
// each in a spot pool of its own.
func (c *dispersal) pairs(i int, one, two bin) []*way {
	var pairs [][2]int
	theirs := c.quotes(two)
	for _, o := range c.quotes(one) {
		for _, p := range theirs {
			if c.spotPoolOf(o) != c.spotPoolOf(p) {
				pairs = append(pairs, [2]int{o, p})
			}
		}
	}
	price := func(p [2]int) model.Price { return c.catalogue.Offers[p[0]].Price + c.catalogue.Offers[p[1]].Price }
	slices.SortStableFunc(pairs, func(a, b [2]int) int { return cmp.Compare(price(a), price(b)) })
	var out []*way
	for _, p := range pairs[:min(len(pairs), spotPairs)] {
		out = append(out, c.way(i, []bin{one, two}, p[:]))
	}
	return out
}

// upTo divides the pods of a new node into those that fit, and the rest.
func (c *dispersal) upTo(b bin, free model.Resources) (fits, rest bin) {
	fits, rest = b, b
	fits.take, rest.take = nil, nil
	for _, t := range b.take {
		n := min(fit.Room(free, c.demands[t.demand].Shape.Requests, t.pods), t.pods)
		free = free.Minus(c.demands[t.demand].Shape.Requests.Times(int64(n)))
		if n > 0 {
			fits.take = append(fits.take, portion{demand: t.demand, pods: n, chosen: t.chosen[:n:n]})
		}
		if n < t.pods {
			rest.take = append(rest.take, portion{demand: t.demand, pods: t.pods - n, chosen: t.chosen[n:]})
		}
	}
	return fits, rest
}

// divide divides the pods of a new node into two halves: the pods of each workload,
// then all of them.
func (c *dispersal) divide(b bin) (one, two bin) {
	type unit struct {
		demand, load int
		pod          model.Pod
	}
	var units []unit
	for _, t := range b.take {
		for _, p := range t.chosen {
			of := -1
			if i, ok := c.loadOf(&c.standsFor(c.demands[t.demand], p)[0].pod); ok {
				of = i
			}
			units = append(units, unit{t.demand, of, p})
		}
	}
	slices.SortStableFunc(units, func(x, y unit) int { return cmp.Compare(y.load, x.load) })
	halves := [2]bin{b, b}
	for h := range halves {
		halves[h].take = nil
	}
	free := c.catalogue.Types[c.catalogue.Offers[b.offer].Type].Free
	var full [2]float64
	var pods [2]int // of the workload
	for i, u := range units {
		if i > 0 && units[i-1].load != u.load {
			pods = [2]int{}
		}
		h := 0
		if u.load >= 0 && pods[1] < pods[0] || (u.load < 0 || pods[0] == pods[1]) && full[1] < full[0] {
			h = 1
		}
		pods[h]++
		full[h] += part(c.demands[u.demand].Shape.Requests, free)
		take := &halves[h].take
		if j := slices.IndexFunc(*take, func(t portion) bool { return t.demand == u.demand }); j >= 0 {
			(*take)[j].pods++
			(*take)[j].chosen = append((*take)[j].chosen, u.pod)
		} else {
			*take = append(*take, portion{demand: u.demand, pods: 1, chosen: []model.Pod{u.pod}})
		}
	}
	return halves[0], halves[1]
}

// part returns the largest part of what is free of a resource that is requested.
func part(requests, free model.Resources) float64 {
	most := 0.0
	for r := range requests {
		if v := free.At(r); v > 0 {
			most = max(most, float64(requests[r])/float64(v))
		}
	}
	return most
}

// boughtAs returns the new node as one that is launched as the offer: in its zone, and
// as no type that costs less there. It reports false if its pool demands more types
// than that leaves.
func (c *dispersal) boughtAs(b bin, offer int) (bin, bool) {
	spans := c.spans(b)
	is := &c.catalogue.Offers[offer]
	b.offer, b.within, b.zone = offer, nil, is.Zone
	window := c.pool(offer).Offers.Window()
	within := c.offersWithin(window, b)
	requests := c.podRequests(b)
	for i := range within.All() {
		c.work--
		other := &c.catalogue.Offers[window.First()+i]
		if other.Zone != is.Zone {
			within.Unset(i)
			continue
		}
		row := &c.catalogue.Types[other.Type]
		if other.Type != is.Type && (other.Price < is.Price || other.Price == is.Price && other.Type < is.Type) && requests.Fits(row.Free) {
			for j := row.Offers.From; j < row.Offers.To; j++ {
				within.Unset(j - window.First())
			}
		}
	}
	b.within = within
	if len(c.floors[c.poolOf(offer)]) == 0 { // else what is reserved is for all types it must list
		b.capacity = c.capacity(offer)
	}
	return b, !spans || c.spans(b)
}

// take launches new nodes in place of one. It reports false and changes nothing if the
// scheduler would then not put all pods where they are planned.
func (c *dispersal) take(w way) bool {
	b := c.bins[w.bin]
	before := c.mark()
	pool := c.poolOf(b.offer)
	c.limits.take(pool, b.capacity, -1)
	for _, n := range w.by {
		c.limits.take(pool, n.capacity, 1)
	}
	own := c.stakes(&b)
	c.countWay(&w, own, 1)
	c.bins = slices.Clone(c.bins)
	c.bins[w.bin] = w.by[0]
	c.bins = append(c.bins, w.by[1:]...)
	for _, f := range w.fills {
		c.bins[f.bin] = f.as
	}
	if !c.stands() {
		c.rollback(before)
		c.countWay(&w, own, -1)
		c.stay[w.bin] = true
		return false
	}
	delete(c.ways, w.bin)
	for _, f := range w.fills {
		delete(c.ways, f.bin)
	}
	if len(c.limits.pools[pool].resources) > 0 { // others may be launched as less or as more now
		clear(c.ways)
	}
	c.left -= w.more
	c.own[pool] -= w.more
	return true
}

// stands reports whether the scheduler would put all pods where they are planned.
func (c *dispersal) stands() bool {
	c.spend(16 * c.size())
	if !slices.ContainsFunc(c.demands, func(d *demand) bool { return !c.topology.Free(d.kind) }) {
		return true
	}
	c.spend(c.outlooks())
	moves, _ := c.recount()
	for i, n := range c.topology.Admit(moves) {
		if n < moves[i].Pods {
			return false
		}
	}
	return standsUnwished(c.draft)
}

// pin has new nodes with pods of workloads that were spread be launched where they are
// planned, and their types be such that they do not cost less in that zone.
func (c *dispersal) pin() {
	apart := map[int]bool{}
	for i := range c.bins {
		if c.bins[i].zone != "" {
			for _, l := range c.in(&c.bins[i]) {
				apart[l] = true
			}
		}
	}
	for i := range c.bins {
		b := &c.bins[i]
		if c.work > 0 && b.zone == "" && c.spot(b.offer) && slices.ContainsFunc(c.in(b), func(l int) bool { return apart[l] }) {
			before := *b
			pinned, ok := c.boughtAs(*b, b.offer)
			if !ok {
				continue
			}
			if *b = pinned; !c.stands() {
				*b = before
			}
		}
	}
}

// remaining returns the loads that exceed their share, with what spreading each would
// cost besides what was paid.
func (c *dispersal) remaining(paid model.Price) []model.Crowd {
	var out []model.Crowd
	var loads []int
	for at := range c.loads {
		l := &c.loads[at]
		most, worst := elsewhere, int64(0)
		for in, n := range l.in {
			over := n - c.most(l, in)
			if over > worst || over > 0 && over == worst && c.spots.all[in].before(c.spots.all[most]) {
				most, worst = in, over
			}
		}
		if most == elsewhere {
			continue
		}
		crowded := c.spots.all[most]
		w := model.Crowd{
			Pool: c.catalogue.Pools[crowded.pool].Name, In: crowded.name + " in " + crowded.zone,
			Share: float64(l.in[most]) / float64(l.total), Most: c.maxSpotPoolShare(crowded.pool),
		}
		if l.workload != "" {
			w.Workload = l.namespace + "/" + l.workload
		}
		out, loads = append(out, w), append(loads, at)
	}
	before := c.mark()
	for i, at := range loads[:min(len(loads), pricedCrowds)] {
		d := c.alone(at)
		if d.spread() {
			more := max(c.priceOfBins()-paid, 0)
			out[i].Cost = &more
			c.rollback(before)
		}
	}
	return out
}

// alone returns the dispersal that spreads one load, whatever it costs.
func (c *dispersal) alone(load int) *dispersal {
	d := *c
	d.loads = slices.Clone(c.loads)
	for i := range d.loads {
		d.loads[i].in = maps.Clone(c.loads[i].in)
	}
	d.only, d.left, d.work = load, math.MaxInt64, disperseWork/pricedCrowds
	d.own = slices.Repeat([]model.Price{math.MaxInt64}, len(c.own))
	d.stay, d.ways = map[int]bool{}, maps.Clone(c.ways)
	return &d
}

// mostCounted is up to how many nodes it is asked whether a command crowds a workload.
const mostCounted = 256

// crowds reports whether without some nodes more of a workload or of a pool would be
// in one spot pool than with them, and more than it should.
func crowds(x *draft) bool {
	if len(x.snapshot.Nodes) > mostCounted {
		return false
	}
	c := newDispersal(x)
	for i := range x.placed {
		c.loadOf(&x.placed[i].pod)
	}
	total := func() (sum float64) {
		for i := range c.loads {
			sum += c.excess(i)
		}
		return sum
	}
	c.clear()
	c.countAll()
	after := total()
	if after == 0 {
		return false
	}
	c.clear()
	c.countNodes(true)
	return after > total()+1e-9
}
