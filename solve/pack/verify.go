// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// repair is the phase that looks at all that was planned as the scheduler will,
// takes out again what it would reject, and finds other places for that.
type repair struct{ *draft }

// verify counts again, with every node there, and takes pods that the scheduler
// would reject out of the plan again. It returns what that teaches.
func (r repair) verify() lessons {
	if !slices.ContainsFunc(r.demands, func(d *demand) bool { return !r.topology.Free(d.kind) }) {
		return lessons{}
	}
	moves, pods := r.recount()
	admitted := r.topology.Admit(moves)
	if r.settleOthers(moves, admitted) {
		moves, pods = r.recount()
		admitted = r.topology.Admit(moves)
	}
	refused := map[string]bool{}
	for i := range moves {
		for _, p := range pods[i][admitted[i]:] {
			refused[p.Key()] = true
		}
	}
	if len(refused) == 0 {
		return lessons{}
	}
	found := lessons{apart: r.comeApart(refused), wary: map[int]bool{}}
	for i, m := range moves {
		for _, p := range pods[i] {
			if refused[p.Key()] {
				d := r.wholeOf(m.Kind)
				d.stuck = append(d.stuck, p)
			}
		}
		if admitted[i] < m.Pods && !r.known.wary[m.Kind] {
			found.wary[m.Kind] = true
		}
	}
	r.unplace(refused)
	return found
}

// outlasts reports whether the scheduler would follow the draft while domains count
// whose only nodes are being deleted.
func (r repair) outlasts() bool {
	waiting := *r.draft
	moves, _ := repair{&waiting}.recount()
	waiting.keepDomains(true)
	for i, n := range waiting.topology.Admit(moves) {
		if n < moves[i].Pods {
			return false
		}
	}
	return true
}

// comeApart adds to the rejected all pods of bundles of which one is rejected. It
// returns the kinds of which it was not known that they do not go together.
func (r repair) comeApart(refused map[string]bool) map[[2]int]bool {
	found := map[[2]int]bool{}
	for first, bundle := range r.bundles {
		if !slices.ContainsFunc(bundle, func(t tied) bool { return refused[t.pod.Key()] }) {
			continue
		}
		delete(r.bundles, first)
		for _, t := range bundle {
			refused[t.pod.Key()] = true
			for _, o := range bundle {
				if kinds := [2]int{t.of.kind, o.of.kind}; o.of != t.of && !r.known.apart[kinds] {
					found[kinds] = true
				}
			}
		}
	}
	return found
}

// recount begins to count again, with each new node a site, and returns what was
// planned. Pods of which it was seen before that they stay are counted.
func (r repair) recount() ([]topology.Move, [][]model.Pod) {
	moves, pods, nodes, bins := r.moves()
	r.count(topology.NewWith(r.snapshot, r.wishes, nodes, r.newOutlook(bins), &r.memory.rules))
	r.topology.Final(true)
	for _, p := range r.earlier {
		r.topology.Add(p.kind, r.topology.At(p.site), p.site, 1)
	}
	return moves, pods
}

// outlooks is how many types the possible labels of all new nodes are worked out of,
// whenever pods are counted again.
func (r repair) outlooks() int { return len(r.bins) * len(r.catalogue.Types) }

// settleOthers settles new nodes, whose launches leave their domain open, for
// the one they are planned in, when pods were not admitted to which the domains
// they may open matter. It reports whether it settled any.
func (r repair) settleOthers(moves []topology.Move, admitted []int) bool {
	var keys []int
	for i, m := range moves {
		if admitted[i] < m.Pods {
			keys = append(keys, r.topology.Minds(m.Kind)...)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return false
	}
	r.unroll()
	some := false
	for i := range r.bins {
		site := len(r.snapshot.Nodes) + i
		if slices.ContainsFunc(keys, func(key int) bool { return len(r.topology.At(site)[key]) > 1 }) {
			some = r.settleBinAs(&r.bins[i], keys) || some
		}
	}
	return some
}

// settleBinAs settles a new node for where its offer is.
func (r repair) settleBinAs(b *bin, keys []int) bool {
	d := r.demands[b.take[0].demand]
	keys = slices.Clone(keys)
	for _, m := range d.parts() {
		keys = append(keys, r.topology.Pinned(m.of.kind)...)
	}
	slices.Sort(keys)
	for _, a := range r.atlas.areasAt(b.offer, slices.Compact(keys)) {
		if !r.mayBeIn(*b, a) {
			continue
		}
		part := r.settledAs(d, a)
		if !part.Offers.Has(b.offer) {
			continue
		}
		settled := *b
		settled.take = slices.Clone(b.take)
		settled.take[0].demand = part.index
		if r.spans(*b) && !r.spans(settled) {
			return false
		}
		*b = settled
		return true
	}
	return false
}

// settledAs returns the demand, without pods to be launched for, that is d tied
// to an area.
func (r repair) settledAs(d *demand, a area) *demand {
	return r.tiedTo(d, a, anyTerm)
}

// anyTerm stands for all alternatives of a shape.
const anyTerm = -1

// tiedTo returns the demand, without pods to be launched for, that is d tied to an
// area and to one of the alternatives of its shape.
func (r repair) tiedTo(d *demand, a area, term int) *demand {
	pins := a.pins()
	name := fmt.Sprint(d.index, " ", pins, " ", term)
	if i, ok := r.settled[name]; ok {
		return r.demands[i]
	}
	r.settled[name] = len(r.demands)
	tied, steps := r.catalogue.Join(*d.Shape, pins, d.Demand)
	if term != anyTerm {
		shape := *d.Shape
		shape.Selector, shape.Terms, shape.VolumeTerms = shape.Alternatives()[term].And(pins...), nil, nil
		tied = r.catalogue.Only(r.besideDaemons(r.catalogue.NewDemand(model.Pending{Shape: &shape})), d.Offers)
	}
	r.budget.Spend(steps)
	part := &demand{
		Demand: tied,
		index:  len(r.demands), kind: d.kind, whole: d.parts()[0].of, bundle: d.bundle, area: &a,
	}
	r.demands = append(r.demands, part)
	return part
}

// moves lists what was planned by kind and node, with the nodes to be launched
// and the bins they are of.
func (r repair) moves() (moves []topology.Move, pods [][]model.Pod, nodes []model.Node, bins []int) {
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
	for _, p := range r.placed[len(r.earlier):] { // those that are kept come first
		add(p.kind, p.site, p.pod)
	}
	for i, b := range r.bins {
		node := model.Node{Taints: r.pool(b.offer).Taints}
		for n := range b.count {
			site := len(r.snapshot.Nodes) + len(nodes)
			nodes, bins = append(nodes, node), append(bins, i)
			for _, t := range b.take {
				for _, p := range t.chosen[n*t.pods : (n+1)*t.pods] {
					for _, one := range r.standsFor(r.demands[t.demand], p) {
						add(one.of.kind, site, one.pod)
					}
				}
			}
		}
	}
	return moves, pods, nodes, bins
}

// unplace takes pods off the nodes they were planned on.
func (r repair) unplace(refused map[string]bool) {
	gone := func(p model.Pod) bool { return refused[p.Key()] }
	r.placed = slices.DeleteFunc(r.placed, func(p placement) bool { return gone(p.pod) })
	r.unroll()
	for i := range r.bins {
		b := &r.bins[i]
		for j := range b.take {
			b.take[j].chosen = slices.DeleteFunc(slices.Clone(b.take[j].chosen), gone)
			b.take[j].pods = len(b.take[j].chosen)
		}
		b.take = slices.DeleteFunc(b.take, func(t portion) bool { return t.pods == 0 })
	}
	r.bins = slices.DeleteFunc(r.bins, func(b bin) bool {
		if len(b.take) == 0 {
			r.limits.take(r.poolOf(b.offer), b.capacity, -1)
			if id := r.reservation(b.offer); id != "" {
				r.prepaid[id]++
			}
		}
		return len(b.take) == 0
	})
}

// learn returns where fewer nodes could be launched than pods were settled for, as
// far as that is news that may help pods that have no place.
func (r repair) learn() lessons {
	if !slices.ContainsFunc(r.demands, func(d *demand) bool { return len(d.stuck) > 0 }) {
		return lessons{}
	}
	short, settled := map[lesson]int{}, map[lesson]int{}
	for _, d := range r.demands {
		if d.whole != nil && d.bundle == nil {
			for _, l := range []lesson{{kind: d.kind, cell: d.area.name()}, {kind: d.kind, all: true}} {
				short[l] += d.short
				settled[l] += len(d.Pods)
			}
		}
	}
	limited := slices.ContainsFunc(r.catalogue.Pools, func(p fit.Pool) bool { return len(p.Limits) > 0 })
	news := func(l lesson) bool {
		most, known := r.known.most[l]
		return short[l] > 0 && (!known || settled[l]-short[l] < most) && (!l.all || limited && short[l] < settled[l])
	}
	found := lessons{most: map[lesson]int{}}
	for l, n := range short {
		// A limit that cells share says how many pods can be launched for, not where.
		if all := (lesson{kind: l.kind, all: true}); news(l) && (l.all || !news(all)) {
			found.most[l] = settled[l] - n
		}
	}
	return found
}
