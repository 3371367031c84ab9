package pack

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// verify looks at all that was planned as the scheduler will, with every node
// there, and takes pods that it would refuse out of the plan again. It reports
// whether these taught it something.
func (k *Packer) verify() bool {
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return !k.topology.Free(d.kind) }) {
		return false
	}
	moves, pods := k.recount()
	admitted := k.topology.Admit(moves)
	if k.settleOthers(moves, admitted) {
		moves, pods = k.recount()
		admitted = k.topology.Admit(moves)
	}
	refused := map[string]bool{}
	for i := range moves {
		for _, p := range pods[i][admitted[i]:] {
			refused[p.Key()] = true
		}
	}
	if len(refused) == 0 {
		return false
	}
	news := k.comeApart(refused)
	for i, m := range moves {
		for _, p := range pods[i] {
			if refused[p.Key()] {
				d := k.wholeOf(m.Kind)
				d.stuck = append(d.stuck, p)
			}
		}
	}
	k.unplace(refused)
	for i, m := range moves {
		if admitted[i] < m.Pods && !k.wary[m.Kind] {
			k.wary[m.Kind], news = true, true
		}
	}
	return news
}

// comeApart adds to the refused all pods of bundles of which one is refused,
// and notes that its kinds do not go together. It reports whether that is news.
func (k *Packer) comeApart(refused map[string]bool) bool {
	news := false
	for first, bundle := range k.bundled {
		if !slices.ContainsFunc(bundle, func(t tied) bool { return refused[t.pod.Key()] }) {
			continue
		}
		delete(k.bundled, first)
		for _, t := range bundle {
			refused[t.pod.Key()] = true
			for _, o := range bundle {
				if l := with(t.of.kind, o.of.kind); o.of != t.of && k.learned[l] == 0 {
					k.learned[l], news = 1, true
				}
			}
		}
	}
	return news
}

// recount begins to count anew, with each new node a site, and returns what was
// planned. Pods of which it was seen before that they stay are counted.
func (k *Packer) recount() ([]topology.Move, [][]model.Pod) {
	moves, pods, nodes, bins := k.moves()
	k.topology = topology.NewWith(k.snapshot, k.granted, nodes, k.newOutlook(bins))
	k.topology.Final(true)
	for _, p := range k.kept {
		k.topology.Add(p.kind, k.topology.At(p.site), p.site, 1)
	}
	k.divided = map[string][]area{} // domains may be numbered anew
	return moves, pods
}

// settleOthers settles new nodes, whose launches leave their domain open, for
// the one they are planned in, when pods were not admitted to which the domains
// they may open matter. It reports whether it settled any.
func (k *Packer) settleOthers(moves []topology.Move, admitted []int) bool {
	var keys []int
	for i, m := range moves {
		if admitted[i] < m.Pods {
			keys = append(keys, k.topology.Minds(m.Kind)...)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return false
	}
	k.unroll()
	some := false
	for i := range k.bins {
		site := len(k.snapshot.Nodes) + i
		if slices.ContainsFunc(keys, func(key int) bool { return len(k.topology.At(site)[key]) > 1 }) {
			some = k.settleBinAs(&k.bins[i], keys) || some
		}
	}
	return some
}

// settleBinAs settles a new node for where its offer is.
func (k *Packer) settleBinAs(b *bin, keys []int) bool {
	d := k.demands[b.take[0].demand]
	keys = slices.Clone(keys)
	for _, m := range d.parts() {
		keys = append(keys, k.topology.Pinned(m.of.kind)...)
	}
	slices.Sort(keys)
	for _, a := range k.areas(slices.Compact(keys)) {
		if !slices.Contains(a.offers, b.offer) || !a.suits(k.demandsOf(*b)) {
			continue
		}
		settled := *b
		settled.take = slices.Clone(b.take)
		settled.take[0].demand = k.settledAs(d, a).index
		if k.spans(*b) && !k.spans(settled) {
			return false
		}
		*b = settled
		return true
	}
	return false
}

// settledAs returns the demand, without pods to be bought for, that is d tied
// to an area.
func (k *Packer) settledAs(d *demand, a area) *demand {
	name := fmt.Sprint(d.index, " ", a.pins)
	if i, ok := k.settledIn[name]; ok {
		return k.demands[i]
	}
	k.settledIn[name] = len(k.demands)
	shape := *d.Shape
	shape.Selector = shape.Selector.And(a.pins...)
	part := &demand{
		Demand: k.catalogue.Only(k.catalogue.NewDemand(model.Pending{Shape: &shape}), d.Offers),
		index:  len(k.demands), kind: d.kind, whole: d.parts()[0].of, bundle: d.bundle,
		cell: &cell{id: a.id, place: a.place, pins: a.pins, names: a.names},
	}
	k.demands = append(k.demands, part)
	return part
}

// nearby returns the places where other pods may be bought nodes that count for
// spread constraints of d.
func (k *Packer) nearby(d *demand) []topology.Place {
	usable := fit.NewBits(len(k.catalogue.Offers))
	for i := range k.catalogue.Pools {
		usable = usable.Or(k.catalogue.Pools[i].Allowed)
	}
	if !slices.ContainsFunc(d.Shape.Spread, func(s model.Spread) bool { return s.AnyNode }) {
		usable = usable.And(k.catalogue.Any(d.Shape.Chosen()))
	}
	var out []topology.Place
	for _, a := range k.areas(k.topology.Pinned(d.kind)) {
		if slices.ContainsFunc(a.offers, usable.Has) {
			out = append(out, a.place)
		}
	}
	return out
}

// moves lists what was planned by kind and node, with the nodes to be bought
// and the bins they are of.
func (k *Packer) moves() (moves []topology.Move, pods [][]model.Pod, nodes []model.Node, bins []int) {
	index := map[topology.Move]int{}
	add := func(kind, site int, some ...model.Pod) {
		i, ok := index[topology.Move{Kind: kind, Site: site}]
		if !ok {
			i = len(moves)
			index[topology.Move{Kind: kind, Site: site}] = i
			moves, pods = append(moves, topology.Move{Kind: kind, Site: site}), append(pods, nil)
		}
		moves[i].Pods += len(some)
		pods[i] = append(pods[i], some...)
	}
	for _, p := range k.placed[len(k.kept):] { // those that are kept come first
		add(p.kind, p.site, p.pod)
	}
	for i, b := range k.bins {
		node := model.Node{Taints: k.pool(b.offer).Taints}
		for n := range b.count {
			site := len(k.snapshot.Nodes) + len(nodes)
			nodes, bins = append(nodes, node), append(bins, i)
			for _, t := range b.take {
				for _, p := range t.chosen[n*t.pods : (n+1)*t.pods] {
					for _, one := range k.standsFor(k.demands[t.demand], p) {
						add(one.of.kind, site, one.pod)
					}
				}
			}
		}
	}
	return moves, pods, nodes, bins
}

// wholeOf returns the demand of all pods of a kind.
func (k *Packer) wholeOf(kind int) *demand {
	i := slices.IndexFunc(k.demands, func(d *demand) bool { return d.kind == kind && d.whole == nil })
	return k.demands[i]
}

// unplace takes pods off the nodes they were planned on.
func (k *Packer) unplace(refused map[string]bool) {
	gone := func(p model.Pod) bool { return refused[p.Key()] }
	k.placed = slices.DeleteFunc(k.placed, func(p placement) bool { return gone(p.pod) })
	k.unroll()
	for i := range k.bins {
		b := &k.bins[i]
		for j := range b.take {
			b.take[j].chosen = slices.DeleteFunc(slices.Clone(b.take[j].chosen), gone)
			b.take[j].pods = len(b.take[j].chosen)
		}
		b.take = slices.DeleteFunc(b.take, func(t portion) bool { return t.pods == 0 })
	}
	k.bins = slices.DeleteFunc(k.bins, func(b bin) bool {
		if len(b.take) == 0 {
			k.limits.take(k.poolOf(b.offer), b.capacity, -1)
			if id := k.reservation(b.offer); id != "" {
				k.prepaid[id]++
			}
		}
		return len(b.take) == 0
	})
}

// learn notes where fewer nodes could be bought than pods were settled for,
// and reports whether that is news that may help pods that have no place.
func (k *Packer) learn() bool {
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return len(d.stuck) > 0 }) {
		return false
	}
	short, settled := map[lesson]int{}, map[lesson]int{}
	for _, d := range k.demands {
		if d.whole != nil && d.bundle == nil {
			for _, l := range []lesson{{d.kind, d.cell.name()}, {d.kind, everywhere}} {
				short[l] += d.short
				settled[l] += len(d.Pods)
			}
		}
	}
	limited := slices.ContainsFunc(k.catalogue.Pools, func(p fit.Pool) bool { return len(p.Limits) > 0 })
	news := func(l lesson) bool {
		most, known := k.learned[l]
		return short[l] > 0 && (!known || settled[l]-short[l] < most) && (l.cell != everywhere || limited && short[l] < settled[l])
	}
	again := false
	for l, n := range short {
		// A limit that cells share says how many pods can be bought for, not where.
		if all := (lesson{l.kind, everywhere}); !news(l) || l != all && news(all) {
			continue
		}
		again = true
		defer func() { k.learned[l] = settled[l] - n }() // the others are asked about what was known before
	}
	return again
}

// separate sets what keeps pods of the demands from sharing new nodes.
func (k *Packer) separate() {
	members := make([][]int, len(k.snapshot.Pending)) // demands by kind
	for i, d := range k.demands {
		for _, m := range d.parts() {
			members[m.of.kind] = append(members[m.of.kind], i)
		}
	}
	apart := k.topology.Apart()
	for i, d := range k.demands {
		d.most, d.apart = k.atMost(d), nil
		for _, m := range d.parts() {
			for _, kind := range apart[m.of.kind] {
				d.keepFrom(i, members[kind], len(k.demands))
			}
			if d.most > 0 {
				d.keepFrom(i, members[m.of.kind], len(k.demands))
			}
		}
		if len(d.Shape.HostPorts) > 0 {
			for j, o := range k.demands {
				if conflict(d, o) {
					d.keepFrom(i, []int{j}, len(k.demands))
				}
			}
		}
	}
	k.group(members)
}

// group sets which demands share a bound. Bundles do not share it: they keep
// apart.
func (k *Packer) group(members [][]int) {
	k.groups = nil
	for _, g := range k.topology.Groups() {
		together := group{limit: g.Limit, members: fit.NewBits(len(k.demands))}
		var all []int
		for _, kind := range g.Kinds {
			all = append(all, members[kind]...)
		}
		for _, i := range all {
			if d := k.demands[i]; d.bundle != nil {
				d.keepFrom(i, all, len(k.demands))
				for _, j := range all {
					k.demands[j].keepFrom(j, []int{i}, len(k.demands))
				}
			} else {
				together.members.Set(i)
			}
		}
		k.groups = append(k.groups, together)
	}
	slices.SortStableFunc(k.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.limit, b.limit), slices.Compare(a.members, b.members))
	})
}

func conflict(a, b *demand) bool { return fit.Conflict(a.Shape.HostPorts, b.Shape.HostPorts) }

// keepFrom has d, at position i of so many demands, share no new node with
// others.
func (d *demand) keepFrom(i int, others []int, demands int) {
	for _, o := range others {
		if o == i {
			continue
		}
		if d.apart == nil {
			d.apart = fit.NewBits(demands)
		}
		d.apart.Set(o)
	}
}

// stricter reports whether nodes were bought by rules that are stricter than
// the scheduler's: pods are tied to one of several domains, or kept apart that
// may share a node when they come in the right order.
func (k *Packer) stricter() bool {
	return k.final || k.topology.Mixed() || slices.ContainsFunc(k.demands, func(d *demand) bool { return d.whole != nil })
}
