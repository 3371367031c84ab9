// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// Addable names the pods the plan leaves pending although one more could go,
// as the scheduler reads the rules, to a node of the plan or to one more
// launch; with join, to a launch of the plan as well. The scheduler must still
// follow the whole plan then: one more node may open a domain, so that pods of
// the plan could not all go where they are planned.
func Addable(s *model.Snapshot, p model.Policy, plan *model.Plan, join bool) []string {
	a := &adder{checker: newChecker(s, p), plan: plan, join: join}
	var teams []team
	a.sites, teams = a.layOut(plan)
	for _, t := range teams {
		for range t.left {
			t.site.bind(t.pending)
		}
	}
	var out []string
	for _, v := range plan.Verdicts {
		if len(v.Shape.Refused) > 0 || strings.HasPrefix(v.Reason, "no node is planned for pods with ") || len(v.Pods) == 0 || a.held(plan, &v) || Yields(&v) {
			continue
		}
		a.pod, a.one = a.confined(plan, a.pending[v.Pods[0].Key()], v.Pods[0]), v.Pods[0]
		if a.follows() {
			continue
		}
		a.machines = slices.DeleteFunc(a.offered(), func(m machine) bool { return a.avoided(v.Pods[0], m) })
		if where := a.where(); where != "" {
			out = append(out, fmt.Sprintf("%s is pending, but %s would take it (%s)", v.Pods[0].Key(), where, v))
		}
	}
	return out
}

// avoided reports whether the PodGroup of the pod avoids the instance until as many of its pods
// run as must start together.
func (a *adder) avoided(p model.Pod, m machine) bool {
	return slices.ContainsFunc(a.s.Groups, func(g model.PodGroup) bool {
		return g.Name == p.Group && Lacking(a.s, g) > 0 && slices.ContainsFunc(g.Avoid, func(at model.Place) bool {
			return at.Type == m.kind.Name && at.Zone == m.offer.Zone
		})
	})
}

// Yields reports whether the pods stand in for buffers and have given way to pods that
// exist: they are planned again with the next decision.
func Yields(v *model.Verdict) bool {
	return v.Reason == "pods that exist use its capacity" && !slices.ContainsFunc(v.Pods, func(p model.Pod) bool { return p.Buffer == "" })
}

type adder struct {
	*checker
	plan     *model.Plan
	join     bool
	sites    []*site
	pod      *model.Pending
	one      model.Pod // of it
	machines []machine // that could be launched for the pod, were there no limits
}

// machine is what one more launch could become.
type machine struct {
	site  *site
	pool  *model.Pool
	kind  *model.InstanceType
	offer *model.Offering

	demands model.Requirements // what the claim demands and the instance has
}

// where returns a site that would take one more pod, or "".
func (a *adder) where() string {
	all := append(slices.Clone(a.sites), &site{name: "another host", blank: true}) // a node can always be added, so hosts spread from none
	for _, m := range a.machines {
		all = append(all, m.site)
	}
	for i := range a.s.Nodes {
		if a.onto(&a.s.Nodes[i]) && refusal(all, a.pod, a.sites[i]) == "" && a.stands(i, a.sites[i]) {
			return "node " + a.s.Nodes[i].Name
		}
	}
	for i := range a.plan.Launches {
		if at := a.into(&a.plan.Launches[i]); a.join && at != nil {
			at.bound = a.sites[len(a.s.Nodes)+i].bound
			others := slices.Clone(all)
			others[len(a.s.Nodes)+i] = at
			if refusal(others, a.pod, at) == "" && a.stands(len(a.s.Nodes)+i, at) {
				return at.name
			}
		}
	}
	for _, m := range a.machines {
		if a.affords(m, all) && refusal(all, a.pod, m.site) == "" && a.stands(len(a.sites), m.site) {
			return m.site.name
		}
	}
	return ""
}

// stands reports whether the scheduler would follow the plan with one more pod at
// a site, which stands for the one at the position.
func (a *adder) stands(position int, at *site) bool {
	sites, teams := a.layOut(a.plan)
	fresh := *at
	fresh.bound = nil
	if position == len(sites) {
		sites = append(sites, &fresh)
	} else {
		fresh.bound = sites[position].bound
		for i := range teams {
			if teams[i].site == sites[position] {
				teams[i].site = &fresh
			}
		}
		sites[position] = &fresh
	}
	return replay(sites, append(teams, team{pending: a.pod, site: &fresh, left: 1})) == ""
}

// onto reports whether the node has room for the pod and suits it.
func (a *adder) onto(n *model.Node) bool {
	if n.Deleting || n.Closed || !accepts(n.Labels, n.Taints, a.pod.Shape) {
		return false
	}
	sum := a.pod.Shape.Requests
	shapes := []*model.Shape{a.pod.Shape}
	var others []model.Pod
	for _, p := range a.plan.Placements {
		if p.Node == n.Name {
			others = append(others, p.Pod)
			shapes = append(shapes, a.shapes[p.Pod.Key()])
			sum = sum.Plus(a.shapes[p.Pod.Key()].Requests)
		}
	}
	return sum.Fits(spare(n, a.s.Daemons)) && !clash(slices.Concat(n.HostPorts, daemonPorts(n, a.s.Daemons)), shapes) && !overAttached(n, shapes) &&
		a.supplies(n.Devices, others)
}

// spare is what is left of a node for pods, once its daemons are all there.
func spare(n *model.Node, daemons []model.Daemon) model.Resources {
	labels := n.Labels
	if n.Claim != "" {
		labels = labels.And(model.NewRequirement(model.LabelRegistered, model.In, "true"), model.NewRequirement(model.LabelInitialized, model.In, "true"))
	}
	var expected model.Resources
	for _, d := range daemons {
		if accepts(labels, n.Taints, d.Shape) {
			expected = expected.Plus(d.Shape.Requests)
		}
	}
	return n.Allocatable.Minus(n.Requested.Minus(n.Leaving).Max(nil)).Minus(expected.Minus(n.DaemonRequested).Max(nil)).Max(nil)
}

// daemonPorts are those of daemons that run on the node, will, or may, whatever
// its labels turn out to be.
func daemonPorts(n *model.Node, daemons []model.Daemon) []model.HostPort {
	var out []model.HostPort
	for _, d := range daemons {
		may := func(labels model.Requirements) bool { return accepts(labels, n.Taints, d.Shape) }
		if slices.ContainsFunc(eachValue(n.Labels), may) {
			out = append(out, d.Shape.HostPorts...)
		}
	}
	return out
}

// into returns the launch as an instance with room for the pod, or nil.
func (a *adder) into(l *model.Launch) *site {
	pool := a.pool(l.Pool)
	if slices.ContainsFunc(pool.Requirements, func(r model.Requirement) bool { return r.MinValues > 0 }) {
		return nil // it may need every type it has
	}
	pods := []*model.Shape{a.pod.Shape}
	for _, p := range l.Pods {
		pods = append(pods, a.shapes[p.Key()])
	}
	for _, o := range outcomes(pool, l) {
		rejects := func(s *model.Shape) bool { return !accepts(o.labels, pool.Taints, s) }
		if o.offer.Available && o.kind.Name == l.Type && !slices.ContainsFunc(pods, rejects) && a.holds(o, pool, pods) && a.supplies(o.kind.Devices, l.Pods) {
			return &site{name: fmt.Sprintf("the launch of %s in %s", o.kind.Name, o.offer.Zone), taints: pool.Taints,
				outcomes: []model.Requirements{numbered(a.s, o.labels.And(model.NewRequirement(model.LabelNodePool, model.In, pool.Name)))}}
		}
	}
	return nil
}

// holds reports whether the pods fit an instance beside its daemons.
func (a *adder) holds(o outcome, pool *model.Pool, pods []*model.Shape) bool {
	var sum model.Resources
	var ports []model.HostPort
	for _, p := range pods {
		sum = sum.Plus(p.Requests)
	}
	for _, d := range a.s.Daemons {
		_, bad := model.Untolerated(firm(pool.Taints), d.Shape.Tolerations)
		if !bad && slices.ContainsFunc(o.kind.Offerings, func(x model.Offering) bool { return suits(a.s, pool, o.kind, &x, d.Shape) }) {
			sum = sum.Plus(d.Shape.Requests)
			ports = append(ports, d.Shape.HostPorts...)
		}
	}
	return sum.Fits(o.kind.Allocatable) && !clash(ports, pods) && !overAttached(fresh(o.kind), pods)
}

// offered returns every instance that could be launched for the pod alone.
func (a *adder) offered() []machine {
	var out []machine
	for i := range a.s.Pools {
		pool := &a.s.Pools[i]
		if _, bad := model.Untolerated(firm(pool.Taints), a.pod.Shape.Tolerations); bad || pool.Unavailable != "" {
			continue
		}
		for _, t := range pool.Types {
			for j := range t.Offerings {
				o := &t.Offerings[j]
				if !o.Available || !a.holds(outcome{kind: t, offer: o}, pool, []*model.Shape{a.pod.Shape}) || !a.supplies(t.Devices, nil) {
					continue
				}
				for _, labels := range a.labelings(pool, t, o) {
					out = append(out, machine{&site{name: fmt.Sprintf("a new %s in %s", t.Name, o.Zone), taints: pool.Taints,
						outcomes: []model.Requirements{numbered(a.s, labels)}}, pool, t, o, labels})
				}
			}
		}
	}
	for i := range out {
		out[i].site.name += fmt.Sprintf(" (%d)", i)
	}
	return out
}

// labelings returns the labels such an instance may have for the pod: a label
// the pool leaves open has any one of its values.
func (a *adder) labelings(pool *model.Pool, t *model.InstanceType, o *model.Offering) []model.Requirements {
	var out []model.Requirements
	own := pool.Requirements.And(model.NewRequirement(model.LabelNodePool, model.In, pool.Name))
	for _, alt := range a.pod.Shape.Alternatives() {
		if !suitsOne(a.s, own, t, o, alt) {
			continue
		}
		out = append(out, eachValue(own.And(alt...).And(t.Requirements...).And(o.Requirements...))...)
	}
	return out
}

// affords reports whether the limits of the pool, its minValues and the
// reservations allow the instance besides the plan. Where minValues ask for more
// types, these must do as well.
func (a *adder) affords(m machine, all []*site) bool {
	if m.offer.ReservationID != "" && a.policy.ReservedCapacity {
		left := m.offer.ReservationLeft
		for _, n := range a.s.Nodes {
			if n.Reservation == m.offer.ReservationID {
				left--
			}
		}
		for _, l := range a.plan.Launches {
			if slices.Contains(l.ReservationIDs, m.offer.ReservationID) {
				left--
			}
		}
		if left <= 0 {
			return false
		}
	}
	if !a.within(m.pool, m.kind) {
		return false
	}
	var types []*model.InstanceType
	for _, x := range a.machines {
		same := x.pool == m.pool && x.offer.Zone == m.offer.Zone && x.offer.CapacityType == m.offer.CapacityType &&
			x.offer.ReservationID == m.offer.ReservationID && a.alike(x, m) && refusal(all, a.pod, x.site) == ""
		if same && !slices.Contains(types, x.kind) && a.within(x.pool, x.kind) {
			types = append(types, x.kind)
		}
	}
	return a.policy.RelaxMinValues || slices.ContainsFunc(a.pod.Shape.Alternatives(), func(alt model.Requirements) bool {
		own := m.pool.Requirements.And(model.NewRequirement(model.LabelNodePool, model.In, m.pool.Name))
		return suitsOne(a.s, own, m.kind, m.offer, alt) && !slices.ContainsFunc(m.pool.Requirements, func(r model.Requirement) bool {
			allowed, _ := m.pool.Requirements.And(alt...).Get(r.Key)
			if r.MinValues > 1 && ruledBy(a.s, r.Key) {
				return true // a rule between pods may settle the node for one value
			}
			return span(types, r.Key, allowed) < r.MinValues || r.MinValues > a.policy.MaxTypes // too short a list may not span them
		})
	})
}

// alike reports whether the instances agree in what must be settled for the pod.
func (a *adder) alike(x, y machine) bool {
	keys := []string{}
	for _, c := range a.pod.Shape.Spread {
		if !c.Soft {
			keys = append(keys, c.Key)
		}
	}
	for _, t := range required(a.pod.Shape, false) {
		keys = append(keys, t.Key)
	}
	return !slices.ContainsFunc(keys, func(key string) bool {
		return key != model.LabelHostname && !slices.Equal(x.site.domains(key), y.site.domains(key))
	})
}

// within reports whether the pool's limits allow one more of the type.
func (a *adder) within(pool *model.Pool, t *model.InstanceType) bool {
	sum := pool.Usage.Plus(t.Capacity)
	for i := range a.plan.Launches {
		if l := &a.plan.Launches[i]; l.Pool == pool.Name {
			sum = sum.Plus(a.largest(pool, l))
		}
	}
	return !slices.ContainsFunc(pool.Limits, func(l model.Limit) bool { return sum.At(l.Resource) > l.Max })
}

// ruledBy reports whether some rule between pods is about the label.
func ruledBy(s *model.Snapshot, key string) bool {
	about := func(t model.PodTerm) bool { return t.Key == key }
	return slices.ContainsFunc(s.Pending, func(p model.Pending) bool {
		return slices.ContainsFunc(p.Shape.PodTerms, about) || slices.ContainsFunc(p.Shape.Spread, func(c model.Spread) bool { return c.Key == key })
	}) || slices.ContainsFunc(s.Nodes, func(n model.Node) bool {
		return slices.ContainsFunc(n.Residents, func(r model.Resident) bool { return slices.ContainsFunc(r.Anti, about) })
	})
}
