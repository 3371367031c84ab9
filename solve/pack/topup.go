package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// topUp tries to put pods that are left onto nodes there are and onto nodes of
// the plan, now that all of them are known. With no more nodes to be bought
// the scheduler's own reading of a spread over nodes holds: the least is what
// the emptiest of the nodes has.
func (k *Packer) topUp() {
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return len(d.left)+len(d.stuck) > 0 }) {
		return
	}
	k.unroll(0)
	moves, _, nodes, bins := k.moves()
	k.topology = topology.NewWith(k.snapshot, nodes, &outlook{Packer: k, bins: bins, ways: map[int]fit.Bits{}})
	k.topology.Admit(moves)
	k.topology.Final()
	for moved := true; moved; {
		moved = false
		for _, d := range k.inOrder() {
			d.left, d.stuck = append(d.left, d.stuck...), nil
			for i := range k.nodes {
				moved = k.toNode(d, &k.nodes[i]) || moved
			}
			for i := range k.bins {
				moved = k.toBin(d, i) || moved
			}
		}
	}
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
	for len(d.left) > 0 && k.topology.Cap(d.kind, site) > 0 && k.topology.Allows(d.kind, k.topology.At(site)) && k.takes(k.bins[i], d) {
		k.topology.Add(d.kind, k.topology.At(site), site, 1)
		b := &k.bins[i]
		if j := slices.IndexFunc(b.take, func(t portion) bool { return t.demand == d.index }); j >= 0 {
			b.take[j].pods++
			b.take[j].chosen = append(slices.Clone(b.take[j].chosen), d.left[0])
		} else {
			b.take = append(slices.Clone(b.take), portion{demand: d.index, pods: 1, chosen: []model.Pod{d.left[0]}})
		}
		d.left, moved = d.left[1:], true
	}
	return moved
}

// takes reports whether the bin has room for one more pod of d, and can be
// bought as the same offer then.
func (k *Packer) takes(b bin, d *demand) bool {
	row := &k.catalogue.Types[k.catalogue.Offers[b.offer].Type]
	if !d.Offers.Has(b.offer) || !k.podRequests(b).Plus(d.Shape.Requests).Fits(row.Free) {
		return false
	}
	for _, t := range b.take {
		if conflict(d, k.demands[t.demand]) {
			return false
		}
	}
	demands := k.demandsOf(b).And(d.At(b.offer)...)
	return k.catalogue.MatchAll(demands).Has(b.offer)
}
