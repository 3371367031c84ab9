// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// fewBins is up to how many new nodes every type of the pool is considered for
// a node that gets one more pod.
const fewBins = 64

// mostAlternatives is up to how many node affinity terms are tried one by one.
const mostAlternatives = 8

// What it takes, in steps: to work out where a new node could be launched, and to see
// whether one could be settled for an area.
const (
	stepsPerBin    = 1024
	stepsPerNarrow = 64
	stepsPerJoin   = 32 // whether one of the nodes takes one more pod
)

// rounds bounds how often nodes of the plan are settled for pods that are left.
const rounds = 32

// topUp puts pods that are left onto nodes there are and onto nodes of the
// plan. With no more nodes to be launched the scheduler's own reading of a spread
// over nodes holds: the least is what the emptiest of the nodes has.
func (r repair) topUp() {
	for range rounds {
		r.rebuild()
		for moved := true; moved; {
			moved = false
			for _, d := range r.inOrder() {
				if len(d.left) == 0 {
					continue
				}
				r.budget.Spend(stepsPerJoin * (len(r.nodes) + len(r.bins)))
				for i := range r.nodes {
					moved = r.toNode(d, &r.nodes[i]) || moved
				}
				for i := range r.bins {
					moved = d.buyable && r.toBin(d, i) || moved
				}
			}
		}
		if !r.homeless() || r.overspends() || r.budget.Overdrawn() || !r.narrow() {
			return
		}
	}
}

// rebuild counts pods where they are planned, each new node a site.
func (r repair) rebuild() {
	r.gatherLeft()
	moves, _ := r.recount()
	r.topology.Admit(moves)
}

// gatherLeft has every pod that has no place among those left of its demand, and
// every new node in a bin of its own.
func (r repair) gatherLeft() {
	for _, d := range r.demands {
		d.left, d.stuck = append(d.left, d.stuck...), nil
	}
	r.unroll()
}

// narrow settles a new node, whose launch leaves its domain open, for one that
// is open to a pod that is left, and puts this there. It reports whether there
// was one.
func (r repair) narrow() bool {
	for _, d := range r.inOrder() {
		keys := r.topology.Pinned(d.kind)
		if len(d.left) == 0 || len(keys) == 0 {
			continue
		}
		for _, a := range r.atlas.areas(keys) {
			if !r.topology.Allows(d.kind, a.place) || !slices.ContainsFunc(d.Shape.Alternatives(), a.suits) {
				continue
			}
			if r.overspends() || r.budget.Overdrawn() {
				return false
			}
			r.budget.Spend(stepsPerNarrow * len(r.bins))
			var as []*demand // that d is, tied to the area; nil = to be worked out
			for i := range r.bins {
				site := len(r.snapshot.Nodes) + i
				if r.topology.Cap(d.kind, site) == 0 || !within(a.place, r.topology.At(site), keys) || !r.mayHold(i, d) || !r.mayBeIn(r.bins[i], a) {
					continue
				}
				if as == nil {
					as = r.settledAsAny(d, a)
				}
				if slices.ContainsFunc(as, func(as *demand) bool { return r.joinBin(d, as, i, a.offers) }) {
					return true
				}
			}
		}
	}
	return false
}

// mayHold reports whether a new node may have room for one more pod of d.
func (r repair) mayHold(i int, d *demand) bool {
	b := &r.bins[i]
	return len(r.bins) <= fewBins || r.fitBeside(d.Shape.Requests, b, r.catalogue.Types[r.catalogue.Offers[b.offer].Type].Free)
}

// settleBin settles a new node for the area, and puts the next pod of d there, if there
// is room.
func (r repair) settleBin(d *demand, a area, i int) bool {
	return slices.ContainsFunc(r.settledAsAny(d, a), func(as *demand) bool { return r.joinBin(d, as, i, a.offers) })
}

// settledAsAny returns d tied to an area and, if pods of d may run for one of
// several reasons, also d tied to each of these.
func (r repair) settledAsAny(d *demand, a area) []*demand {
	var out []*demand
	for _, term := range termsIn(d, a) {
		out = append(out, r.tiedTo(d, a, term))
	}
	return out
}

// termsIn returns what a pod of d in the area may be tied to: all alternatives of
// its shape and, if there are a few, each of those that a node there can meet.
func termsIn(d *demand, a area) []int {
	out := []int{anyTerm}
	alternatives := d.Shape.Alternatives()
	if len(alternatives) == 1 || len(alternatives) > mostAlternatives {
		return out
	}
	for i, alt := range alternatives {
		if a.suits(alt) {
			out = append(out, i)
		}
	}
	return out
}

// joinBin puts the next pod of d on a new node, as a pod of another demand that
// stands for it, if the node has room and can be launched as one of the offers.
func (r repair) joinBin(d, as *demand, i int, offers fit.OfferSet) bool {
	offer, ok := r.takes(r.bins[i], as, offers)
	if ok {
		site := len(r.snapshot.Nodes) + i
		r.topology.Add(d.kind, r.topology.At(site), site, 1)
		r.put(&r.bins[i], as.index, offer, d.left[0])
		d.left = d.left[1:]
	}
	return ok
}

// toNode puts pods of d on a node there is, as many as it takes.
func (r repair) toNode(d *demand, n *fit.NodeRow) bool {
	moved := false
	for len(d.left) > 0 && r.room(d, n, 1) > 0 && r.topology.Allows(d.kind, r.topology.At(n.Site)) {
		moved = r.onto(d, n)
	}
	return moved
}

// onto puts the next pod of d on a node there is.
func (r repair) onto(d *demand, n *fit.NodeRow) bool {
	r.topology.Add(d.kind, r.topology.At(n.Site), n.Site, 1)
	r.place(n, d, d.left[:1])
	d.left = d.left[1:]
	return true
}

// toBin puts pods of d on a new node, as many as it takes.
func (r repair) toBin(d *demand, i int) bool {
	moved := false
	for r.canJoin(d, i) && r.mayHold(i, d) && r.intoBin(d, i) {
		moved = true
	}
	return moved
}

// canJoin reports whether the rules between pods let the next pod of d run on a
// new node.
func (r repair) canJoin(d *demand, i int) bool {
	site := len(r.snapshot.Nodes) + i
	return len(d.left) > 0 && r.topology.Cap(d.kind, site) > 0 && r.topology.Allows(d.kind, r.topology.At(site))
}

// intoBin puts the next pod of d on a new node, if there is room: as a pod that
// is settled for all domains that matter to any pod or, if the node is not, for
// those that matter to d.
func (r repair) intoBin(d *demand, i int) bool {
	place := r.topology.At(len(r.snapshot.Nodes) + i)
	for _, keys := range r.keysOf(d) {
		if len(keys) == 0 {
			anywhere := area{region: unlabelled, place: place}
			return r.joinBin(d, d, i, d.Offers) || len(d.Shape.Alternatives()) > 1 &&
				slices.ContainsFunc(r.settledAsAny(d, anywhere), func(as *demand) bool { return r.joinBin(d, as, i, d.Offers) })
		}
		if a, ok := r.areaOf(place, keys, r.bins[i].offer); ok {
			return r.settleBin(d, a, i)
		}
	}
	return false
}

// keysOf returns by which keys a new node for d can be settled: by those that
// matter to d or to whoever counts its pods; where the pool leaves one of them
// open, by those that must be settled for d; or, in a small plan, by all that any rule is
// about, since a node that may be anywhere may open a domain where others have too few
// pods. Whether that does is seen when the plan is verified.
func (r repair) keysOf(d *demand) [][]int {
	own := r.topology.Minds(d.kind)
	slices.Sort(own)
	all := r.topology.Pinned(d.kind)
	if len(r.bins)+len(r.placed) > 0 && r.size() <= mostReordered {
		all = nil
		for key := range r.topology.Keys {
			all = append(all, key)
		}
	}
	var out [][]int
	for _, keys := range [][]int{r.topology.Pinned(d.kind), slices.Compact(own), all} {
		if !slices.ContainsFunc(out, func(known []int) bool { return slices.Equal(known, keys) }) {
			out = append(out, keys)
		}
	}
	return out
}

// areaOf returns the area of a place, where the offer is.
func (r repair) areaOf(p topology.Place, keys []int, offer int) (area, bool) {
	id := placeID(p, keys)
	for _, a := range r.atlas.areas(keys) {
		if a.id == id && a.offers.Has(offer) {
			return a, true
		}
	}
	return area{}, false
}

// put adds one pod of a demand to a bin of one node, which is launched as offer.
func (r repair) put(b *bin, demand, offer int, p model.Pod) {
	pool := r.poolOf(b.offer)
	if len(r.floors[pool]) == 0 { // else what is reserved is for all types it must list
		r.limits.take(pool, b.capacity, -1)
		b.capacity = r.capacity(offer)
		r.limits.take(pool, b.capacity, 1)
	}
	b.offer, b.take = offer, slices.Clone(b.take)
	if j := slices.IndexFunc(b.take, func(t portion) bool { return t.demand == demand }); j >= 0 {
		b.take[j].pods++
		b.take[j].chosen = append(slices.Clone(b.take[j].chosen), p)
		return
	}
	b.take = append(b.take, portion{demand: demand, pods: 1, chosen: []model.Pod{p}})
}

// takes reports whether the bin has room for one more pod of d, and as which
// of the offers it would then be launched.
func (r repair) takes(b bin, d *demand, offers fit.OfferSet) (offer int, ok bool) {
	if !d.Offers.Any(r.pool(b.offer).Offers) {
		return 0, false
	}
	for _, t := range b.take {
		if conflict(d, r.demands[t.demand]) {
			return 0, false
		}
	}
	rows := fit.Range{From: r.catalogue.Offers[b.offer].Type}
	rows.To = rows.From + 1
	if len(r.bins) <= fewBins {
		rows = r.pool(b.offer).Types
	}
	r.budget.Spend(rows.To - rows.From)
	requests := r.podRequests(b).Plus(d.Shape.Requests)
	with := append(slices.Clip(b.take), portion{demand: d.index, pods: 1})
	var large []*fit.TypeRow
	for t := rows.From; t < rows.To; t++ {
		row := &r.catalogue.Types[t]
		if requests.Fits(row.Free) && (r.covered(row.Pool, b.capacity, row.Capacity) || r.grows(b, row)) && r.supplied(row, with) {
			large = append(large, row)
		}
	}
	if len(large) == 0 {
		return 0, false
	}
	r.budget.Spend(stepsPerBin)
	price := model.Price(math.MaxInt64)
	window := r.pool(b.offer).Offers.Window()
	left := r.offersWithin(window, b)
	d.Offers.Keep(window, left)
	offers.Keep(window, left)
	asked, spoils := r.askedOf(b), r.spoiler(b, d)
	for _, row := range large {
		for o := row.Offers.From; o < row.Offers.To; o++ {
			if p := r.catalogue.Offers[o].Price; left.Has(o-window.First()) && p < price && !spoils(o) && r.catalogue.Meets(o, asked.And(d.At(o)...)) {
				offer, price, ok = o, p, true
			}
		}
	}
	return offer, ok
}

// grows reports whether the limits of its pool let the bin become a larger type.
func (r repair) grows(b bin, row *fit.TypeRow) bool {
	return len(r.floors[row.Pool]) == 0 && r.limits.covers(row.Pool, b.capacity, row.Capacity)
}

// within reports whether a node at the wider place may turn out to be at the
// other, which is another one.
func within(p, wider topology.Place, keys []int) bool {
	return inside(p, wider, keys) && slices.ContainsFunc(keys, func(key int) bool { return len(wider[key]) > 1 })
}
