// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// takeSurvey looks at the demands as they are now.
func (x *draft) takeSurvey() {
	x.survey = survey{byOffers: map[uint64][]int{}}
	for i, d := range x.demands {
		d.index = i
		d.class = x.classOf(d)
		for r, v := range d.Shape.Requests {
			if v > 0 && !slices.Contains(x.wanted, r) {
				x.wanted = append(x.wanted, r)
			}
		}
	}
	for pool := range x.catalogue.Pools {
		x.picky = append(x.picky, slices.ContainsFunc(x.demands, func(d *demand) bool { return x.catalogue.Asks(pool, d.Shape) }))
	}
	x.separate()
}

// surveyOne looks at no demand but d, of which one pod is left.
func (x *draft) surveyOne(d *demand) {
	x.survey = survey{one: d, byOffers: map[uint64][]int{}}
	d.class = x.classOf(d)
	for r, v := range d.Shape.Requests {
		if v > 0 {
			x.wanted = append(x.wanted, r)
		}
	}
	for pool := range x.catalogue.Pools {
		x.picky = append(x.picky, x.catalogue.Asks(pool, d.Shape))
	}
}

// classOf returns the class of d, which may be a new one. Demands of a class may
// use the same offers, and where minValues ask about it for the same reasons.
func (x *draft) classOf(d *demand) int {
	demanding := x.demanding(fit.Range{To: len(x.floors)})
	digest := d.Offers.Digest()
	for _, class := range x.byOffers[digest] {
		if o := x.exemplars[class]; o.Offers.Equal(d.Offers) && (!demanding || o.Constraints() == d.Constraints()) {
			return class
		}
	}
	class := len(x.classes)
	x.classes, x.exemplars, x.byOffers[digest] = append(x.classes, d.Offers), append(x.exemplars, d), append(x.byOffers[digest], class)
	return class
}

// separate sets what keeps pods of the demands from sharing new nodes.
func (x *draft) separate() {
	members := make([][]int, len(x.snapshot.Pending)) // demands by kind
	for i, d := range x.demands {
		for _, m := range d.parts() {
			members[m.of.kind] = append(members[m.of.kind], i)
		}
	}
	type taker struct {
		demand int
		port   model.HostPort
	}
	takers := map[int32][]taker{} // by port
	for i, d := range x.demands {
		for _, p := range d.Shape.HostPorts {
			takers[p.Port] = append(takers[p.Port], taker{i, p})
		}
	}
	apart := x.topology.Apart()
	for i, d := range x.demands {
		d.most, d.apart = x.atMost(d), nil
		for _, m := range d.parts() {
			for _, kind := range apart[m.of.kind] {
				d.keepFrom(i, members[kind], len(x.demands))
			}
			if d.most > 0 {
				d.keepFrom(i, members[m.of.kind], len(x.demands))
			}
		}
		for _, p := range d.Shape.HostPorts {
			for _, t := range takers[p.Port] {
				if p.Conflicts(t.port) {
					d.keepFrom(i, []int{t.demand}, len(x.demands))
				}
			}
		}
	}
	x.group(members)
}

// group sets which demands share a bound. Bundles do not share it: they keep
// apart.
func (x *draft) group(members [][]int) {
	for _, g := range x.topology.Groups() {
		together := group{limit: g.Limit, members: fit.NewBits(len(x.demands))}
		var all []int
		for _, kind := range g.Kinds {
			all = append(all, members[kind]...)
		}
		for _, i := range all {
			if d := x.demands[i]; d.bundle != nil {
				d.keepFrom(i, all, len(x.demands))
				for _, j := range all {
					x.demands[j].keepFrom(j, []int{i}, len(x.demands))
				}
			} else {
				together.members.Set(i)
			}
		}
		x.groups = append(x.groups, together)
	}
	slices.SortStableFunc(x.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.limit, b.limit), slices.Compare(a.members, b.members))
	})
}

// atMost returns how many pods, or bundles, of d share a new node at most, for
// what rules on the hostname and ports say; 0 = any number.
func (x *draft) atMost(d *demand) int {
	most := topology.Unbounded
	for _, m := range d.parts() {
		one := x.topology.Most(m.of.kind)
		if len(m.of.Shape.HostPorts) > 0 {
			one = 1
		}
		if one < topology.Unbounded {
			most = min(most, max(one/m.pods, 1))
		}
	}
	if most == topology.Unbounded {
		return 0
	}
	return cmp.Or(most, 1)
}

// stricter reports whether nodes were launched by rules that are stricter than
// the scheduler's: pods are tied to one of several domains, or kept apart that
// may share a node when they come in the right order.
func (x *draft) stricter() bool {
	return x.final || x.topology.Mixed() || slices.ContainsFunc(x.demands, func(d *demand) bool { return d.whole != nil })
}
