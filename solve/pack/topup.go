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

// rounds bounds how often nodes of the plan are settled for pods that are left.
const rounds = 32

// topUp puts pods that are left onto nodes there are and onto nodes of the
// plan. With no more nodes to be bought the scheduler's own reading of a spread
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
				for i := range r.nodes {
					moved = r.toNode(d, &r.nodes[i]) || moved
				}
				for i := range r.bins {
					moved = r.toBin(d, i) || moved
				}
			}
		}
		if !r.homeless() || !r.narrow() {
			return
		}
	}
}

// rebuild counts pods where they are planned, each new node a site.
func (r repair) rebuild() {
	for _, d := range r.demands {
		d.left, d.stuck = append(d.left, d.stuck...), nil
	}
	r.unroll()
	moves, _ := r.recount()
	r.topology.Admit(moves)
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
			offers := fit.NewBits(len(r.catalogue.Offers))
			for _, o := range a.offers {
				offers.Set(o)
			}
			for i := range r.bins {
				site := len(r.snapshot.Nodes) + i
				if r.topology.Cap(d.kind, site) == 0 || !within(a.place, r.topology.At(site), keys) || !a.suits(r.demandsOf(r.bins[i])) {
					continue
				}
				offer, ok := r.takes(r.bins[i], d, d.Offers.And(offers))
				if !ok {
					continue
				}
				if as, ok := r.settledAs(d, a, offer); ok && !r.spoils(r.bins[i], as, offer) {
					r.settleBin(as, d, &r.bins[i], offer)
					return true
				}
			}
		}
	}
	return false
}

// settleBin settles a new node as a part of d is, and puts the next pod of d
// there.
func (r repair) settleBin(part, d *demand, b *bin, offer int) {
	part.Pods = d.left[:1]
	r.put(b, part.index, offer, d.left[0])
	d.left = d.left[1:]
}

// toNode puts pods of d on a node there is, as many as it takes.
func (r repair) toNode(d *demand, n *fit.NodeRow) bool {
	moved := false
	for len(d.left) > 0 && r.room(d, n, 1) > 0 && r.topology.Allows(d.kind, r.topology.At(n.Site)) {
		r.topology.Add(d.kind, r.topology.At(n.Site), n.Site, 1)
		r.place(n, d, d.left[:1])
		d.left, moved = d.left[1:], true
	}
	return moved
}

// toBin puts pods of d on a new node, as many as it takes.
func (r repair) toBin(d *demand, i int) bool {
	site := len(r.snapshot.Nodes) + i
	moved := false
	for len(d.left) > 0 && r.topology.Cap(d.kind, site) > 0 && r.topology.Allows(d.kind, r.topology.At(site)) {
		offer, ok := r.takes(r.bins[i], d, d.Offers)
		if !ok {
			break
		}
		as := d
		if keys := r.topology.Pinned(d.kind); len(keys) > 0 {
			a, ok := r.areaOf(r.topology.At(site), keys, offer)
			if !ok {
				break
			}
			if as, ok = r.settledAs(d, a, offer); !ok || r.spoils(r.bins[i], as, offer) {
				break
			}
		}
		r.topology.Add(d.kind, r.topology.At(site), site, 1)
		r.put(&r.bins[i], as.index, offer, d.left[0])
		d.left, moved = d.left[1:], true
	}
	return moved
}

// areaOf returns the area of a place, where the offer is.
func (r repair) areaOf(p topology.Place, keys []int, offer int) (area, bool) {
	id := placeID(p, keys)
	for _, a := range r.atlas.areas(keys) {
		if a.id == id && slices.Contains(a.offers, offer) {
			return a, true
		}
	}
	return area{}, false
}

// put adds one pod of a demand to a bin of one node, which is bought as offer.
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
// of the offers it would then be bought.
func (r repair) takes(b bin, d *demand, offers fit.Bits) (offer int, ok bool) {
	for _, t := range b.take {
		if conflict(d, r.demands[t.demand]) {
			return 0, false
		}
	}
	offers = offers.And(r.offersOf(b))
	rows := fit.Range{From: r.catalogue.Offers[b.offer].Type}
	rows.To = rows.From + 1
	if len(r.bins) <= fewBins {
		rows = r.pool(b.offer).Types
	}
	requests, price := r.podRequests(b).Plus(d.Shape.Requests), model.Price(math.MaxInt64)
	for t := rows.From; t < rows.To; t++ {
		row := &r.catalogue.Types[t]
		if !requests.Fits(row.Free) || !r.covered(row.Pool, b.capacity, row.Capacity) {
			continue
		}
		for o := row.Offers.From; o < row.Offers.To; o++ {
			if p := r.catalogue.Offers[o].Price; offers.Has(o) && p < price && r.catalogue.MatchAll(r.demandsOf(b).And(d.At(o)...)).Has(o) {
				if !r.spoils(b, d, o) {
					offer, price, ok = o, p, true
				}
			}
		}
	}
	return offer, ok
}

// within reports whether a node at the wider place may turn out to be at the
// other, which is another one.
func within(p, wider topology.Place, keys []int) bool {
	open := false
	for _, key := range keys {
		if len(p[key]) != 1 || !slices.Contains(wider[key], p[key][0]) {
			return false
		}
		open = open || len(wider[key]) > 1
	}
	return open
}
