package pack

import (
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// helpings is how often more nodes are bought for pods that had to wait.
const helpings = 2

// fewBins is up to how many new nodes every type of the pool is considered for
// a node that gets one more pod.
const fewBins = 64

// rounds bounds how often nodes of the plan are settled for pods that are left.
const rounds = 32

// finish tries to find places for pods that are left, now that all nodes of
// the plan are known.
func (k *Packer) finish() {
	if !k.homeless() {
		return
	}
	k.final = true
	k.topUp()
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return len(d.left) > 0 && !k.topology.Free(d.kind) }) {
		return
	}
	// What others were planned since may let in pods that had to wait.
	for range helpings {
		before := k.podsLeft()
		k.everywhere()
		k.takeBack()
		k.verify()
		k.topUp()
		if k.podsLeft() >= before {
			break
		}
	}
}

func (k *Packer) homeless() bool {
	return slices.ContainsFunc(k.demands, func(d *demand) bool { return len(d.left)+len(d.stuck) > 0 })
}

// topUp puts pods that are left onto nodes there are and onto nodes of the
// plan. With no more nodes to be bought the scheduler's own reading of a spread
// over nodes holds: the least is what the emptiest of the nodes has.
func (k *Packer) topUp() {
	for range rounds {
		k.rebuild()
		for moved := true; moved; {
			moved = false
			for _, d := range k.inOrder() {
				if len(d.left) == 0 {
					continue
				}
				for i := range k.nodes {
					moved = k.toNode(d, &k.nodes[i]) || moved
				}
				for i := range k.bins {
					moved = k.toBin(d, i) || moved
				}
			}
		}
		if !k.homeless() || !k.narrow() {
			return
		}
	}
}

// rebuild counts pods where they are planned, each new node a site.
func (k *Packer) rebuild() {
	for _, d := range k.demands {
		d.left, d.stuck = append(d.left, d.stuck...), nil
	}
	k.unroll()
	moves, _ := k.recount()
	k.topology.Admit(moves)
}

// narrow settles a new node, whose launch leaves its domain open, for one that
// is open to a pod that is left, and puts this there. It reports whether there
// was one.
func (k *Packer) narrow() bool {
	for _, d := range k.inOrder() {
		keys := k.topology.Pinned(d.kind)
		if len(d.left) == 0 || len(keys) == 0 {
			continue
		}
		for _, a := range k.areas(keys) {
			if !k.topology.Allows(d.kind, a.place) || !slices.ContainsFunc(d.Shape.Alternatives(), a.suits) {
				continue
			}
			offers := fit.NewBits(len(k.catalogue.Offers))
			for _, o := range a.offers {
				offers.Set(o)
			}
			for i := range k.bins {
				site := len(k.snapshot.Nodes) + i
				if k.topology.Cap(d.kind, site) == 0 || !within(a.place, k.topology.At(site), keys) || !a.suits(k.demandsOf(k.bins[i])) {
					continue
				}
				if offer, ok := k.takes(k.bins[i], d, d.Offers.And(offers)); ok && !k.spoils(k.bins[i], k.settledAs(d, a), offer) {
					k.settleBin(d, a, &k.bins[i], offer)
					return true
				}
			}
		}
	}
	return false
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

// settleBin settles a new node for the area and puts the next pod of d there.
func (k *Packer) settleBin(d *demand, a area, b *bin, offer int) {
	part := k.settledAs(d, a)
	part.Pods = d.left[:1]
	k.put(b, part.index, offer, d.left[0])
	d.left = d.left[1:]
}

// toNode puts pods of d on a node there is, as many as it takes.
func (k *Packer) toNode(d *demand, n *fit.NodeRow) bool {
	moved := false
	for len(d.left) > 0 && k.room(d, n, 1) > 0 && k.topology.Allows(d.kind, k.topology.At(n.Site)) {
		k.topology.Add(d.kind, k.topology.At(n.Site), n.Site, 1)
		k.place(n, d, d.left[:1])
		d.left, moved = d.left[1:], true
	}
	return moved
}

// toBin puts pods of d on a new node, as many as it takes.
func (k *Packer) toBin(d *demand, i int) bool {
	site := len(k.snapshot.Nodes) + i
	moved := false
	for len(d.left) > 0 && k.topology.Cap(d.kind, site) > 0 && k.topology.Allows(d.kind, k.topology.At(site)) {
		offer, ok := k.takes(k.bins[i], d, d.Offers)
		if !ok {
			break
		}
		as := d
		if keys := k.topology.Pinned(d.kind); len(keys) > 0 {
			a, ok := k.areaOf(k.topology.At(site), keys, offer)
			if !ok {
				break
			}
			if as = k.settledAs(d, a); k.spoils(k.bins[i], as, offer) {
				break
			}
		}
		k.topology.Add(d.kind, k.topology.At(site), site, 1)
		k.put(&k.bins[i], as.index, offer, d.left[0])
		d.left, moved = d.left[1:], true
	}
	return moved
}

// areaOf returns the area of a place, where the offer is.
func (k *Packer) areaOf(p topology.Place, keys []int, offer int) (area, bool) {
	id := placeID(p, keys)
	for _, a := range k.areas(keys) {
		if a.id == id && slices.Contains(a.offers, offer) {
			return a, true
		}
	}
	return area{}, false
}

// put adds one pod of a demand to a bin of one node, which is bought as offer.
func (k *Packer) put(b *bin, demand, offer int, p model.Pod) {
	pool := k.poolOf(b.offer)
	if len(k.floors[pool]) == 0 { // else what is reserved is for all types it must list
		k.limits.take(pool, b.capacity, -1)
		b.capacity = k.capacity(offer)
		k.limits.take(pool, b.capacity, 1)
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
func (k *Packer) takes(b bin, d *demand, offers fit.Bits) (offer int, ok bool) {
	for _, t := range b.take {
		if conflict(d, k.demands[t.demand]) {
			return 0, false
		}
	}
	offers = offers.And(k.offersOf(b))
	rows := fit.Range{From: k.catalogue.Offers[b.offer].Type}
	rows.To = rows.From + 1
	if len(k.bins) <= fewBins {
		rows = k.pool(b.offer).Types
	}
	requests, price := k.podRequests(b).Plus(d.Shape.Requests), model.Price(math.MaxInt64)
	for t := rows.From; t < rows.To; t++ {
		row := &k.catalogue.Types[t]
		if !requests.Fits(row.Free) || !k.limits.covers(row.Pool, b.capacity, row.Capacity) {
			continue
		}
		for o := row.Offers.From; o < row.Offers.To; o++ {
			if p := k.catalogue.Offers[o].Price; offers.Has(o) && p < price && k.catalogue.MatchAll(k.demandsOf(b).And(d.At(o)...)).Has(o) {
				if !k.spoils(b, d, o) {
					offer, price, ok = o, p, true
				}
			}
		}
	}
	return offer, ok
}
