// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// apart is the phase that, once the nodes of a plan are known, moves pods that
// prefer to share no node with others alike: to nodes of the plan that have room,
// or in exchange for a pod there. Every node stays what it is, so no plan costs
// more for it.
//
// What pods that share a node would rather not is counted by pairs: the pod that
// prefers, and the other that its preference selects. Only changes are made that
// leave fewer pairs, so the phase ends.
type apart struct {
	repair
	sites  []crowd
	picked map[[2]int]bool  // by two kinds: the first prefers no node with a pod of the other
	areas  map[[2]int]*area // by kind and offer
	fixed  map[string]bool  // pods that an earlier plan placed
	stay   map[int]bool     // kinds that are not moved
	work   int              // that is left
}

// crowd is a node of the plan with the pods that it gets.
type crowd struct {
	row   *fit.NodeRow // nil = it is a new node
	bin   int
	site  int
	free  model.Resources
	kinds []settlers
}

// settlers is the pods of one demand on a node.
type settlers struct {
	demand, kind, pods int
}

// separations is how many comparisons of two nodes are made for one plan at most.
const separations = 1 << 22

// separateTries is how often pods are moved again, without the kinds of those
// that the scheduler would have rejected.
const separateTries = 4

// separate changes the plan of the outcome so that fewer pods share a node that
// would rather not. It reports whether it changed any.
func separate(out *outcome) bool {
	x := out.draft
	if x.trial != nil || x.policy.IgnorePreferences || x.abandoned != inProgress || x.budget.Spent() || !slices.ContainsFunc(x.demands, preferHosts) {
		return false
	}
	before, stay := x.mark(), map[int]bool{}
	for range separateTries {
		a := newApart(x)
		a.stay = stay
		if !a.improve() {
			break
		}
		refused := a.refused()
		if len(refused) == 0 && a.cost() <= out.plan.Cost {
			out.placeAgain()
			return true
		}
		if len(refused) == 0 {
			break
		}
		x.rollback(before)
		for _, kind := range refused {
			stay[kind] = true
		}
	}
	x.rollback(before)
	return false
}

// preferHosts reports whether pods of d prefer to share no node with each other.
func preferHosts(d *demand) bool {
	s := d.Shape
	return slices.ContainsFunc(s.PodTerms, func(t model.PodTerm) bool { return avoidsOnHost(&t) }) ||
		slices.ContainsFunc(s.Spread, func(c model.Spread) bool { return c.Soft && c.Key == model.LabelHostname })
}

func avoidsOnHost(t *model.PodTerm) bool {
	return t.Anti && t.Weight > 0 && t.Key == model.LabelHostname
}

func newApart(x *draft) *apart {
	a := &apart{repair: repair{x}, picked: map[[2]int]bool{}, areas: map[[2]int]*area{}, fixed: map[string]bool{}, work: separations}
	a.rebuild()
	for _, p := range x.kept {
		a.fixed[p.pod.Key()] = true
	}
	at := map[int]int{}
	for i := range x.nodes {
		n := &x.nodes[i]
		at[n.Site] = len(a.sites)
		a.sites = append(a.sites, crowd{row: n, site: n.Site, free: n.Free})
	}
	wholes := map[int]int{}
	for i, d := range x.demands {
		if d.whole == nil {
			wholes[d.kind] = i
		}
	}
	for _, p := range x.placed {
		if i, ok := at[p.site]; ok {
			a.sites[i].add(wholes[p.kind], p.kind, 1)
		}
	}
	for i, b := range x.bins {
		c := crowd{bin: i, site: len(x.snapshot.Nodes) + i}
		c.free = x.catalogue.Types[x.catalogue.Offers[b.offer].Type].Free.Minus(x.podRequests(b))
		for _, t := range b.take {
			c.add(t.demand, x.demands[t.demand].kind, t.pods)
		}
		a.sites = append(a.sites, c)
	}
	return a
}

// add counts pods of a demand on the node.
func (c *crowd) add(demand, kind, pods int) {
	i := slices.IndexFunc(c.kinds, func(s settlers) bool { return s.demand == demand })
	if i < 0 {
		c.kinds = append(c.kinds, settlers{demand, kind, pods})
		return
	}
	if c.kinds[i].pods += pods; c.kinds[i].pods == 0 {
		c.kinds = slices.Delete(c.kinds, i, i+1)
	}
}

// improve moves pods as long as that leaves fewer pairs. It reports whether it
// moved any.
func (a *apart) improve() bool {
	some := false
	for progress := true; progress; {
		progress = false
		for x := range a.sites {
			for i := 0; i < len(a.sites[x].kinds) && a.work > 0; i++ {
				s := a.sites[x].kinds[i]
				for a.pairs(s.kind, x, 1) > 0 && a.movable(s) && a.leave(s, x) {
					progress, some = true, true
					if i >= len(a.sites[x].kinds) || a.sites[x].kinds[i].demand != s.demand {
						i--
						break
					}
				}
			}
		}
	}
	return some
}

// movable reports whether single pods of the demand may be planned elsewhere.
func (a *apart) movable(s settlers) bool {
	d := a.demands[s.demand]
	if d.bundle != nil || len(d.Shape.HostPorts)+len(d.Shape.Volumes)+len(d.Shape.Claims) > 0 || a.stay[s.kind] {
		return false
	}
	return !a.topology.Follows(s.kind) && !a.topology.FollowedBy(s.kind, topology.Any)
}

// leave moves one of the pods off the node, to the first node without any alike
// that has room, or in exchange for another pod, or to where fewest are. It
// reports whether it did.
func (a *apart) leave(s settlers, from int) bool {
	best, least := -1, a.pairs(s.kind, from, 1)
	a.tally(s, from, -1) // the rules are asked as if it were nowhere
	for to := range a.sites {
		if to == from || a.work <= 0 {
			continue
		}
		a.spend(1 + len(a.sites[to].kinds))
		if there := a.pairs(s.kind, to, 0); there < least && a.takesOne(s, to) {
			if best, least = to, there; there == 0 {
				break
			}
		}
	}
	a.tally(s, from, 1)
	if least > 0 && a.exchange(s, from, least) {
		return true
	}
	return best >= 0 && a.move(s, from, best)
}

// exchange swaps one of the pods for a pod of another node, if that leaves fewer
// pairs than moving it to a node where it would be part of so many.
func (a *apart) exchange(s settlers, from, least int) bool {
	if a.sites[from].row != nil {
		return false
	}
	now := a.pairs(s.kind, from, 1)
	for to := range a.sites {
		if to == from || a.sites[to].row != nil || a.work <= 0 {
			continue
		}
		a.spend(1 + len(a.sites[to].kinds))
		there := a.pairs(s.kind, to, 0)
		if there >= least {
			continue
		}
		for _, o := range slices.Clone(a.sites[to].kinds) {
			a.spend(4)
			if o.demand == s.demand || a.picks(s.kind, o.kind) || a.picks(o.kind, s.kind) || !a.fitsBoth(s, o, from, to) || !a.movable(o) || !a.evens(o, from) {
				continue
			}
			a.spend(len(a.sites[from].kinds) + len(a.sites[to].kinds))
			after := there + a.pairs(o.kind, from, 0)
			if after < now+a.pairs(o.kind, to, 1) && after < least+a.pairs(o.kind, to, 1) && a.swap(s, o, from, to) {
				return true
			}
		}
	}
	return false
}

// evens reports whether one of the pods may move without taking from those nodes
// that have fewest of them, by which rules may bound what others have.
func (a *apart) evens(s settlers, to int) bool {
	if a.topology.Free(s.kind) {
		return true
	}
	there := 0
	for _, o := range a.sites[to].kinds {
		if o.kind == s.kind {
			there += o.pods
		}
	}
	return s.pods > there
}

func (a *apart) spend(n int) {
	a.work -= n
	a.budget.Spend(16 * n)
}

// pairs returns of how many pairs a pod of the kind is part on the node, or would
// be; self is 1 if it is one of those there.
func (a *apart) pairs(kind, at, self int) int {
	c := &a.sites[at]
	n := 0
	if a.picks(kind, kind) {
		n -= 2 * self
	}
	for _, o := range c.kinds {
		if a.picks(kind, o.kind) {
			n += o.pods
		}
		if a.picks(o.kind, kind) {
			n += o.pods
		}
	}
	if c.row != nil && c.row.Site < len(a.snapshot.Nodes) {
		n += a.bound(kind, c.row.Site)
	}
	return n
}

// bound returns how many pods that run on a node a pod of the kind prefers not to
// be with.
func (a *apart) bound(kind, site int) int {
	p := &a.snapshot.Pending[kind]
	n := 0
	for i := range a.snapshot.Nodes[site].Residents {
		r := &a.snapshot.Nodes[site].Residents[i]
		if !r.Terminating && avoids(p.Shape, &r.Peer) {
			n += r.Count
		}
	}
	return n
}

// picks reports whether pods of the kind prefer no node with pods of the other.
func (a *apart) picks(kind, other int) bool {
	key := [2]int{kind, other}
	picks, ok := a.picked[key]
	if !ok {
		picks = avoids(a.snapshot.Pending[kind].Shape, &a.snapshot.Pending[other].Peer)
		a.picked[key] = picks
	}
	return picks
}

// avoids reports whether pods of the shape prefer no node with the peer.
func avoids(s *model.Shape, peer *model.Peer) bool {
	for i := range s.PodTerms {
		if t := &s.PodTerms[i]; avoidsOnHost(t) && t.Select.Selects(peer) {
			return true
		}
	}
	for i := range s.Spread {
		if c := &s.Spread[i]; c.Soft && c.Key == model.LabelHostname && c.Select.Selects(peer) {
			return true
		}
	}
	return false
}

// takesOne reports whether the node takes one more of the pods, which count
// nowhere now.
func (a *apart) takesOne(s settlers, to int) bool {
	c := &a.sites[to]
	if !a.demands[s.demand].Shape.Requests.Fits(c.free) {
		return false
	}
	s, ok := a.as(s, to)
	if !ok || !a.topology.Free(s.kind) && (a.topology.Cap(s.kind, c.site) == 0 || !a.topology.Allows(s.kind, a.placeOf(s.kind, c))) {
		return false
	}
	d := a.demands[s.demand]
	if c.row != nil {
		return alone(d.Shape, c.row, 1) > 0
	}
	b := a.bins[c.bin]
	if !d.Offers.Has(b.offer) || slices.ContainsFunc(b.take, func(t portion) bool { return conflict(d, a.demands[t.demand]) }) {
		return false
	}
	demands := d.At(b.offer)
	return (len(demands) == 0 || a.catalogue.Meets(b.offer, a.askedOf(b).And(demands...))) && !a.spoils(b, d, b.offer)
}

// as returns the pods as those of the demand that they belong to on the node: one
// that is tied to the domain of a new node, if rules ask for the domain.
func (a *apart) as(s settlers, to int) (settlers, bool) {
	c, d := &a.sites[to], a.demands[s.demand]
	keys := a.topology.Pinned(s.kind)
	switch {
	case c.row != nil && d.whole != nil:
		s.demand = slices.Index(a.demands, a.wholeOf(s.kind))
	case c.row == nil && d.whole == nil && len(keys) > 0:
		in := a.areaAt(s.kind, c)
		if in == nil || !slices.ContainsFunc(d.Shape.Alternatives(), in.suits) {
			return s, false
		}
		s.demand = a.settledAs(d, *in).index
	}
	return s, true
}

// areaAt returns the area that a new node is in for pods of the kind, which it may
// not be settled for yet; nil = none.
func (a *apart) areaAt(kind int, c *crowd) *area {
	key := [2]int{kind, a.bins[c.bin].offer}
	in, ok := a.areas[key]
	if !ok {
		for _, one := range a.atlas.areas(a.topology.Pinned(kind)) {
			if one.offers.Has(key[1]) {
				in = &one
				break
			}
		}
		a.areas[key] = in
	}
	return in
}

// placeOf returns where pods of the kind are if they are on the node: they settle a
// new node that is open to several domains.
func (a *apart) placeOf(kind int, c *crowd) topology.Place {
	place := a.topology.At(c.site)
	if c.row == nil && slices.ContainsFunc(a.topology.Pinned(kind), func(key int) bool { return len(place[key]) != 1 }) {
		if in := a.areaAt(kind, c); in != nil {
			return in.place
		}
	}
	return place
}

// tally has so many more of the pods count on the node.
func (a *apart) tally(s settlers, at, pods int) {
	a.topology.Add(s.kind, a.placeOf(s.kind, &a.sites[at]), a.sites[at].site, pods)
}

// fitsBoth reports whether two new nodes have room for each other's pod in place
// of their own.
func (a *apart) fitsBoth(s, o settlers, from, to int) bool {
	mine, theirs := a.demands[s.demand].Shape.Requests, a.demands[o.demand].Shape.Requests
	for r := range max(len(mine), len(theirs)) {
		more := mine.At(r) - theirs.At(r)
		if more > 0 && more > a.sites[to].free.At(r) || more < 0 && -more > a.sites[from].free.At(r) {
			return false
		}
	}
	return true
}

// move plans one of the pods on another node.
func (a *apart) move(s settlers, from, to int) bool {
	pod, ok := a.take(s, from)
	if ok {
		a.give(s, to, pod)
	}
	return ok
}

// swap plans one of the pods on each node on the other. It reports false and
// changes nothing if one does not take the other's.
func (a *apart) swap(s, o settlers, from, to int) bool {
	mine, ok := a.take(s, from)
	if !ok {
		return false
	}
	theirs, ok := a.take(o, to)
	if !ok {
		a.give(s, from, mine)
		return false
	}
	if a.takesOne(s, to) && a.takesOne(o, from) {
		a.give(s, to, mine)
		a.give(o, from, theirs)
		return true
	}
	a.give(s, from, mine)
	a.give(o, to, theirs)
	return false
}

// take takes one of the pods off the node.
func (a *apart) take(s settlers, from int) (model.Pod, bool) {
	c, d := &a.sites[from], a.demands[s.demand]
	var pod model.Pod
	if c.row != nil {
		i := slices.IndexFunc(a.placed, func(p placement) bool {
			return p.site == c.row.Site && p.kind == s.kind && !a.fixed[p.pod.Key()]
		})
		if i < 0 {
			return pod, false
		}
		pod = a.placed[i].pod
		a.placed = slices.Delete(a.placed, i, i+1)
		c.row.Free = c.row.Free.Plus(d.Shape.Requests)
	} else {
		b := &a.bins[c.bin]
		i := slices.IndexFunc(b.take, func(t portion) bool { return t.demand == s.demand })
		b.take = slices.Clone(b.take)
		t := &b.take[i]
		pod = t.chosen[len(t.chosen)-1]
		if len(b.take) == 1 && t.pods == 1 {
			return pod, false // no node becomes empty
		}
		t.chosen, t.pods = t.chosen[:t.pods-1:t.pods-1], t.pods-1
		if t.pods == 0 {
			b.take = slices.Delete(b.take, i, i+1)
		}
	}
	c.free = c.free.Plus(d.Shape.Requests)
	c.add(s.demand, s.kind, -1)
	a.tally(s, from, -1)
	return pod, true
}

// give plans a pod on the node.
func (a *apart) give(s settlers, to int, pod model.Pod) {
	s, _ = a.as(s, to)
	c, d := &a.sites[to], a.demands[s.demand]
	if c.row != nil {
		c.row.Free = c.row.Free.Minus(d.Shape.Requests)
		a.placed = append(a.placed, placement{s.kind, c.row.Site, pod})
	} else {
		b := &a.bins[c.bin]
		a.put(b, s.demand, b.offer, pod)
	}
	c.free = c.free.Minus(d.Shape.Requests)
	c.add(s.demand, s.kind, 1)
	a.tally(s, to, 1)
}

// refused returns the kinds that have pods where the scheduler would not put them.
func (a *apart) refused() []int {
	moves, _ := a.recount()
	admitted := a.topology.Admit(moves)
	var out []int
	for i, m := range moves {
		if a.spend(1); admitted[i] < m.Pods {
			out = append(out, m.Kind)
		}
	}
	if len(out) == 0 && !standsUnwished(a.draft) {
		for kind := range a.snapshot.Pending {
			if !a.topology.Free(kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}

// cost returns what the new nodes cost as they are now.
func (a *apart) cost() model.Price {
	plan := model.Plan{}
	report{a.draft}.render(&plan)
	return plan.Cost
}
