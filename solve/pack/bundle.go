// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// A bundle is pods that affinity on the hostname ties to one new node. It is
// launched for as if it were a single pod, its first, that requests what all of
// them do.

// stepsPerRoom is what it takes to see whether a type has room for a pod.
const stepsPerRoom = 4

// join settles pods of d that must run on the node of a pod they have affinity
// to: on nodes there are, and with pods that are yet to be given nodes.
func (s domains) join(d *demand) {
	if s.topology.Starts(d.kind) {
		s.gather(d)
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		for room := s.room(d, n, len(d.left)); room > 0 && s.topology.Allows(d.kind, s.topology.At(n.Site)); room-- {
			s.topology.Add(d.kind, s.topology.At(n.Site), n.Site, 1)
			s.place(n, d, d.left[:1])
			d.left = d.left[1:]
		}
	}
	for _, target := range s.joinable(d) {
		for len(d.left) > 0 && len(target.left) > 0 && s.wants(d, target) && s.accompany(d, target) {
		}
	}
	d.left, d.stuck = nil, d.left
}

// joinable returns the demands whose new nodes pods of d may share: none if no new node takes
// a pod of d.
func (s domains) joinable(d *demand) []*demand {
	if !d.parts()[0].of.buyable {
		return nil
	}
	return slices.Clone(s.demands)
}

// wants reports whether d has affinity to some pod of the target.
func (s domains) wants(d, target *demand) bool {
	return target != d && slices.ContainsFunc(target.parts(), func(m member) bool { return s.topology.Wants(d.kind, m.of.kind) })
}

// gather puts the first pods of d, which all others must follow to their node,
// where most of them fit: a node there is, or a new one.
func (s domains) gather(d *demand) {
	most, on := 0, -1
	for i := range s.nodes {
		n := &s.nodes[i]
		if fits := s.admits(d, s.topology.At(n.Site), s.room(d, n, len(d.left))); fits > most {
			most, on = fits, i
		}
	}
	area, fits := s.largest(d, nil, len(d.left))
	switch {
	case fits > most:
		s.tie(area, []member{{d, fits}})
	case on >= 0:
		n := &s.nodes[on]
		s.topology.Add(d.kind, s.topology.At(n.Site), n.Site, most)
		s.place(n, d, d.left[:most])
		d.left = d.left[most:]
	}
}

// admits returns how many pods of d, at most limit, the rules on keys other
// than the hostname let run at the place.
func (s domains) admits(d *demand, p topology.Place, limit int) int {
	n := 0
	for n < limit && s.topology.WouldAllow(d.kind, p) {
		s.topology.Add(d.kind, p, -1, 1)
		n++
	}
	s.topology.Add(d.kind, p, -1, -n)
	return n
}

// largest returns where a new node takes most pods of d, at most limit, and
// how many; of equals, the cheapest. With a target the node also takes one of
// its pods.
func (s domains) largest(d, target *demand, limit int) (best area, most int) {
	var beside []topology.Move
	if target != nil {
		for _, m := range target.parts() {
			beside = append(beside, topology.Move{Kind: m.of.kind, Pods: m.pods})
		}
	}
	limit = min(limit, s.topology.Beside(d.kind, beside))
	if len(d.Shape.HostPorts) > 0 {
		limit = min(limit, 1)
	}
	keys, offers := s.topology.Pinned(d.kind), d.Offers
	var taken model.Resources
	if target != nil {
		keys, offers, taken = s.jointKeys(d, target), offers.And(target.Offers), target.Shape.Requests
	}
	if limit == 0 || !s.anyRoom(offers, taken, d.Shape.Requests) {
		return best, 0
	}
	s.budget.Spend(len(s.catalogue.Offers))
	if !s.anyOpen(d, offers) {
		return best, 0
	}
	var price model.Price
	for _, a := range s.atlas.areas(keys) {
		allowed := s.admits(d, a.place, limit)
		if allowed < max(most, 1) {
			continue
		}
		at, n := -1, 0 // the type of the last offer, and how many pods it takes
		for o := range a.offers.Common(offers) {
			if !s.plentiful(o, d) {
				continue
			}
			if of := s.catalogue.Offers[o].Type; of != at || len(s.floors[s.poolOf(o)]) > 0 {
				row := &s.catalogue.Types[of]
				if at, n = of, 0; s.limits.allow(row.Pool, row.Capacity, 1) > 0 {
					n = s.carries(o, offers, taken, d.Shape.Requests, allowed)
				}
			}
			if n > most || n == most && n > 0 && s.catalogue.Offers[o].Price < price {
				best, most, price = a, n, s.catalogue.Offers[o].Price
			}
		}
	}
	return best, most
}

// anyRoom reports whether a type with one of the offers has room for the request beside
// what is taken.
func (q *problem) anyRoom(offers fit.OfferSet, taken, request model.Resources) bool {
	for i := range q.catalogue.Pools {
		p := &q.catalogue.Pools[i]
		if !offers.Any(p.Offers) {
			continue
		}
		q.budget.Spend(stepsPerRoom * (p.Types.To - p.Types.From))
		for t := p.Types.From; t < p.Types.To; t++ {
			if row := &q.catalogue.Types[t]; fit.RoomBeside(taken, row.Free, request, 1) > 0 && offers.Any(row.Offers) {
				return true
			}
		}
	}
	return false
}

// anyOpen reports whether one of the offers is in domains that are all open to d, as far as a
// rule about one key tells. Most demands that few domains are open to end here, before their
// areas are told apart.
func (s domains) anyOpen(d *demand, offers fit.OfferSet) bool {
	type key struct {
		labels []int32 // by offer
		open   []bool  // by label; the first is none
	}
	keys := make([]key, 0, len(s.topology.Pinned(d.kind)))
	for _, number := range s.topology.Pinned(d.kind) {
		spelled := s.catalogue.Spelling(s.topology.Keys[number])
		k := key{spelled.Of, []bool{!s.topology.KeepsOut(d.kind, number, topology.NoDomain)}}
		for i := range spelled.Labels {
			l := &spelled.Labels[i]
			k.open = append(k.open, l.Complement || slices.ContainsFunc(l.Values, func(v string) bool {
				return !s.topology.KeepsOut(d.kind, number, s.topology.Domain(number, v))
			}))
		}
		keys = append(keys, k)
	}
	for o := range offers.All() {
		if !slices.ContainsFunc(keys, func(k key) bool { return !k.open[k.labels[o]+1] }) {
			return true
		}
	}
	return false
}

// accompany ties pods of d to one pod, or bundle, of the target. It reports
// whether that was possible.
func (s domains) accompany(d, target *demand) bool {
	for _, m := range target.parts() {
		if s.topology.Excludes(d.kind, m.of.kind) || conflict(d, m.of) || s.known.apart[[2]int{d.kind, m.of.kind}] {
			return false
		}
	}
	area, n := s.largest(d, target, len(d.left))
	if n == 0 {
		return false
	}
	members := append(slices.Clone(target.parts()), member{d, n})
	together := s.compileBundle(area, members)
	if !s.catalogue.Fits(together, fit.Range{To: len(s.catalogue.Offers)}) {
		return false
	}
	first := target.left[0]
	target.left = target.left[1:]
	s.addBundle(together, area, members, slices.Concat(s.untie(target, first), draw(d, n)))
	return true
}

// tie makes a bundle of the next pods of the members.
func (s domains) tie(a area, members []member) {
	var pods []tied
	for _, m := range members {
		pods = append(pods, draw(m.of, m.pods)...)
	}
	s.addBundle(s.compileBundle(a, members), a, members, pods)
}

// untie returns the pods that a pod of d stands for, which were counted where
// d is settled, if it is.
func (s domains) untie(d *demand, p model.Pod) []tied {
	pods := s.bundles[p.Key()]
	delete(s.bundles, p.Key())
	if d.bundle == nil {
		pods = []tied{{d.parts()[0].of, p}}
	}
	if d.area != nil {
		for _, t := range pods {
			s.topology.Add(t.of.kind, d.area.place, -1, -1)
		}
	}
	return pods
}

// addBundle adds a bundle to the demand of its equals.
func (s domains) addBundle(together *fit.Demand, a area, members []member, pods []tied) {
	for _, t := range pods {
		s.topology.Add(t.of.kind, a.place, -1, 1)
	}
	first := pods[0].pod
	s.bundles[first.Key()] = pods
	i := slices.IndexFunc(s.demands, func(d *demand) bool {
		return d.bundle != nil && d.area.id == a.id && slices.Equal(d.bundle, members) && len(d.left) > 0
	})
	if i >= 0 {
		s.demands[i].left = append(s.demands[i].left, first)
		s.demands[i].Pods = append(s.demands[i].Pods, first)
		return
	}
	together.Pods = []model.Pod{first}
	d := &demand{
		Demand: together, kind: members[0].of.kind, whole: members[0].of, bundle: members,
		area: &a, left: []model.Pod{first},
	}
	d.firm = s.catalogue.Fits(d.Demand, fit.Range{To: len(s.catalogue.Offers)})
	s.demands = append(s.demands, d)
}

// compileBundle finds the offers on which all members may run.
func (ds domains) compileBundle(a area, members []member) *fit.Demand {
	shape := model.Shape{Tolerations: []model.Toleration{{Exists: true}}}
	demands := make([]*fit.Demand, 0, len(members))
	for _, m := range members {
		s := m.of.Shape
		shape.Requests = shape.Requests.Plus(s.Requests.Times(int64(m.pods)))
		shape.HostPorts = append(shape.HostPorts, s.HostPorts...)
		demands = append(demands, m.of.Demand)
	}
	together, steps := ds.catalogue.Join(shape, a.pins(), demands...)
	ds.budget.Spend(steps)
	return ds.spanning(together)
}

// release gives the pods of a bundle back to their demands.
func (s domains) release(d *demand, first model.Pod) {
	for _, t := range s.untie(d, first) {
		t.of.stuck = append(t.of.stuck, t.pod)
	}
}
