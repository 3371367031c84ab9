package pack

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// A bundle is pods that affinity on the hostname ties to one new node. It is
// bought for as if it were a single pod, its first, that requests what all of
// them do.

// member is the pods of one demand in every bundle of a demand of bundles.
type member struct {
	of   *demand
	pods int
}

// tied is a pod of a bundle.
type tied struct {
	of  *demand
	pod model.Pod
}

// join settles pods of d that must run on the node of a pod they have affinity
// to: on nodes there are, and with pods that are yet to be bought nodes.
func (k *Packer) join(d *demand) {
	if k.topology.Starts(d.kind) {
		k.gather(d)
	}
	for i := range k.nodes {
		n := &k.nodes[i]
		for room := k.room(d, n, len(d.left)); room > 0 && k.topology.Allows(d.kind, k.topology.At(n.Site)); room-- {
			k.topology.Add(d.kind, k.topology.At(n.Site), n.Site, 1)
			k.place(n, d, d.left[:1])
			d.left = d.left[1:]
		}
	}
	for _, target := range slices.Clone(k.demands) {
		for len(d.left) > 0 && len(target.left) > 0 && k.wants(d, target) && k.accompany(d, target) {
		}
	}
	d.left, d.stuck = nil, d.left
}

// wants reports whether d has affinity to some pod of the target.
func (k *Packer) wants(d, target *demand) bool {
	return target != d && slices.ContainsFunc(target.parts(), func(m member) bool { return k.topology.Wants(d.kind, m.of.kind) })
}

// parts returns what one pod of d stands for.
func (d *demand) parts() []member {
	if d.bundle != nil {
		return d.bundle
	}
	if d.whole != nil {
		return []member{{d.whole, 1}}
	}
	return []member{{d, 1}}
}

// gather puts the first pods of d, which all others must follow to their node,
// where most of them fit: a node there is, or a new one.
func (k *Packer) gather(d *demand) {
	most, on := 0, -1
	for i := range k.nodes {
		n := &k.nodes[i]
		if fits := k.admits(d, k.topology.At(n.Site), k.room(d, n, len(d.left))); fits > most {
			most, on = fits, i
		}
	}
	area, fits := k.largest(d, nil, len(d.left))
	switch {
	case fits > most:
		k.tie(area, []member{{d, fits}})
	case on >= 0:
		n := &k.nodes[on]
		k.topology.Add(d.kind, k.topology.At(n.Site), n.Site, most)
		k.place(n, d, d.left[:most])
		d.left = d.left[most:]
	}
}

// admits returns how many pods of d, at most limit, the rules on keys other
// than the hostname let run at the place.
func (k *Packer) admits(d *demand, p topology.Place, limit int) int {
	n := 0
	for n < limit && k.topology.WouldAllow(d.kind, p) {
		k.topology.Add(d.kind, p, -1, 1)
		n++
	}
	k.topology.Add(d.kind, p, -1, -n)
	return n
}

// largest returns where a new node takes most pods of d, at most limit, and
// how many; of equals, the cheapest. With a target the node also takes one of
// its pods.
func (k *Packer) largest(d, target *demand, limit int) (best area, most int) {
	var beside []topology.Move
	if target != nil {
		for _, m := range target.parts() {
			beside = append(beside, topology.Move{Kind: m.of.kind, Pods: m.pods})
		}
	}
	limit = min(limit, k.topology.Beside(d.kind, beside))
	if len(d.Shape.HostPorts) > 0 {
		limit = min(limit, 1)
	}
	keys, offers := k.topology.Pinned(d.kind), d.Offers
	var taken model.Resources
	if target != nil {
		keys, offers, taken = k.jointKeys(d, target), offers.And(target.Offers), target.Shape.Requests
	}
	var price model.Price
	for _, a := range k.areas(keys) {
		allowed := k.admits(d, a.place, limit)
		for _, o := range a.offers {
			row := &k.catalogue.Types[k.catalogue.Offers[o].Type]
			if allowed == 0 || !offers.Has(o) || !k.plentiful(o, d) || k.limits.allow(row.Pool, row.Capacity, 1) == 0 {
				continue
			}
			n := k.carries(o, offers, taken, d.Shape.Requests, allowed)
			if n > most || n == most && n > 0 && k.catalogue.Offers[o].Price < price {
				best, most, price = a, n, k.catalogue.Offers[o].Price
			}
		}
	}
	return best, most
}

// accompany ties pods of d to one pod, or bundle, of the target. It reports
// whether that was possible.
func (k *Packer) accompany(d, target *demand) bool {
	for _, m := range target.parts() {
		if k.topology.Excludes(d.kind, m.of.kind) || conflict(d, m.of) || k.learned[with(d.kind, m.of.kind)] > 0 {
			return false
		}
	}
	area, n := k.largest(d, target, len(d.left))
	if n == 0 {
		return false
	}
	members := append(slices.Clone(target.parts()), member{d, n})
	together := k.compileBundle(area, members)
	if !k.catalogue.Fits(together, fit.Range{To: len(k.catalogue.Offers)}) {
		return false
	}
	first := target.left[0]
	target.left = target.left[1:]
	k.addBundle(together, area, members, append(k.untie(target, first), draw(d, n)...))
	return true
}

// with names pods of a kind in a bundle with pods of another.
func with(kind, other int) lesson { return lesson{kind: kind, cell: fmt.Sprint("with ", other)} }

// tie makes a bundle of the next pods of the members.
func (k *Packer) tie(a area, members []member) {
	var pods []tied
	for _, m := range members {
		pods = append(pods, draw(m.of, m.pods)...)
	}
	k.addBundle(k.compileBundle(a, members), a, members, pods)
}

// draw takes the next pods of d.
func draw(d *demand, n int) []tied {
	var out []tied
	for _, p := range d.left[:n] {
		out = append(out, tied{d, p})
	}
	d.left = d.left[n:]
	return out
}

// untie returns the pods that a pod of d stands for, which were counted where
// d is settled, if it is.
func (k *Packer) untie(d *demand, p model.Pod) []tied {
	pods := k.bundled[p.Key()]
	delete(k.bundled, p.Key())
	if d.bundle == nil {
		pods = []tied{{d.parts()[0].of, p}}
	}
	if d.cell != nil {
		for _, t := range pods {
			k.topology.Add(t.of.kind, d.cell.place, -1, -1)
		}
	}
	return pods
}

// addBundle adds a bundle to the demand of its equals.
func (k *Packer) addBundle(together *fit.Demand, a area, members []member, pods []tied) {
	for _, t := range pods {
		k.topology.Add(t.of.kind, a.place, -1, 1)
	}
	first := pods[0].pod
	k.bundled[first.Key()] = pods
	i := slices.IndexFunc(k.demands, func(d *demand) bool {
		return d.bundle != nil && d.cell.id == a.id && slices.Equal(d.bundle, members) && len(d.left) > 0
	})
	if i >= 0 {
		k.demands[i].left = append(k.demands[i].left, first)
		k.demands[i].Pods = append(k.demands[i].Pods, first)
		return
	}
	together.Pods = []model.Pod{first}
	d := &demand{
		Demand: together, kind: members[0].of.kind, whole: members[0].of, bundle: members,
		cell: &cell{id: a.id, place: a.place, names: a.names}, left: []model.Pod{first},
	}
	d.firm = k.catalogue.Fits(d.Demand, fit.Range{To: len(k.catalogue.Offers)})
	k.demands = append(k.demands, d)
}

// compileBundle finds the offers on which all members may run.
func (k *Packer) compileBundle(a area, members []member) *fit.Demand {
	shape := model.Shape{Selector: a.pins, Tolerations: []model.Toleration{{Exists: true}}}
	offers := make([]fit.Bits, 0, len(members))
	for _, m := range members {
		s := m.of.Shape
		shape.Requests = shape.Requests.Plus(s.Requests.Times(int64(m.pods)))
		shape.HostPorts = append(shape.HostPorts, s.HostPorts...)
		shape.Terms = (&model.Shape{Terms: shape.Terms, VolumeTerms: s.Alternatives()}).Alternatives()
		offers = append(offers, m.of.Offers)
	}
	return k.spanning(k.catalogue.Only(k.catalogue.NewDemand(model.Pending{Shape: &shape}), offers...))
}

// unbundle replaces the first pods of bundles in launches by all of them.
func (k *Packer) unbundle(plan *model.Plan) {
	if len(k.bundled) == 0 {
		return
	}
	for i := range plan.Launches {
		var pods []model.Pod
		for _, p := range plan.Launches[i].Pods {
			for _, t := range k.standsFor(nil, p) {
				pods = append(pods, t.pod)
			}
		}
		plan.Launches[i].Pods = pods
	}
}

// standsFor returns the pods of which p, a pod of d, is the first in a bundle,
// or p alone.
func (k *Packer) standsFor(d *demand, p model.Pod) []tied {
	if pods, ok := k.bundled[p.Key()]; ok {
		return pods
	}
	return []tied{{d, p}}
}

// release gives the pods of a bundle back to their demands.
func (k *Packer) release(d *demand, first model.Pod) {
	for _, t := range k.untie(d, first) {
		t.of.stuck = append(t.of.stuck, t.pod)
	}
}

// atMost returns how many pods, or bundles, of d share a new node at most, for
// what rules on the hostname and ports say; 0 = any number.
func (k *Packer) atMost(d *demand) int {
	most := topology.Unbounded
	for _, m := range d.parts() {
		one := k.topology.Most(m.of.kind)
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
