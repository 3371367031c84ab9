// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"karpenter/model"
)

// Apply returns the situation after everything the plan says has been done:
// nodes of commands and those going away are gone, launches are nodes, each become one of the
// instances it may become, and pods run where they were planned, quiet for long
// enough. Pods with a verdict are still pending.
func Apply(rng *rand.Rand, s *model.Snapshot, plan *model.Plan) *model.Snapshot {
	merged, all := Merged(clone(s), plan)
	a := &applier{generator: &generator{rng}, s: merged, pods: map[string]*model.Pending{}}
	for i := range merged.Pending {
		for _, p := range merged.Pending[i].Pods {
			a.pods[p.Key()] = &merged.Pending[i]
		}
	}
	merged.Nodes = slices.DeleteFunc(merged.Nodes, func(n model.Node) bool { return n.Deleting })
	for i := range all.Launches {
		a.launch(unused(merged.Nodes), &all.Launches[i])
	}
	for _, cmd := range plan.Commands {
		for i := range merged.Nodes {
			if n := &merged.Nodes[i]; cmd.Reboot && n.Name == cmd.Nodes[0].Node {
				n.Disruption.Unhealthy, n.Disruption.Reboot, n.Disruption.Severity = "", false, 0
			}
		}
		for _, l := range cmd.Launches {
			if len(l.Pods) == 0 {
				l.Types, l.CapacityTypes = []string{l.Type}, []string{l.CapacityType}
				a.launch(unused(merged.Nodes), &l)
			}
		}
	}
	for _, p := range all.Placements {
		i := slices.IndexFunc(merged.Nodes, func(n model.Node) bool { return n.Name == p.Node })
		a.run(&merged.Nodes[i], p.Pod)
	}
	a.settle(all)
	return merged
}

// unused is a name no node has.
func unused(nodes []model.Node) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("launched-%d", i)
		if !slices.ContainsFunc(nodes, func(n model.Node) bool { return n.Name == name }) {
			return name
		}
	}
}

type applier struct {
	*generator
	s    *model.Snapshot
	pods map[string]*model.Pending
}

// launch adds the node that the launch becomes.
func (a *applier) launch(name string, l *model.Launch) {
	pool := &a.s.Pools[slices.IndexFunc(a.s.Pools, func(p model.Pool) bool { return p.Name == l.Pool })]
	o := pick(a.generator, slices.DeleteFunc(outcomes(pool, l), func(o outcome) bool { return !o.offer.Available })...)
	labels := o.labels.And(model.NewRequirement(model.LabelNodePool, model.In, l.Pool), model.NewRequirement(model.LabelHostname, model.In, name))
	var single model.Requirements
	for _, r := range pick(a.generator, eachValue(labels)...) {
		if len(r.Values) == 1 && !r.Complement {
			single = single.And(r)
		}
	}
	n := model.Node{
		Name: name, Claim: name, Pool: l.Pool, Registered: true, Initialized: true, Labels: single, Taints: pool.Taints,
		Capacity: o.kind.Capacity, Allocatable: o.kind.Allocatable, Devices: o.kind.Devices, Price: o.offer.Price,
		Disruption: model.NodeDisruption{Consolidatable: true, Cost: 1},
	}
	for _, d := range a.s.Daemons {
		if accepts(n.Labels, n.Taints, d.Shape) {
			n.DaemonRequested = n.DaemonRequested.Plus(d.Shape.Requests)
			n.HostPorts = append(n.HostPorts, d.Shape.HostPorts...)
		}
	}
	n.Requested = n.DaemonRequested
	for _, p := range l.Pods {
		a.run(&n, p)
	}
	a.s.Nodes = append(a.s.Nodes, n)
	if o.offer.ReservationID != "" {
		a.reserved(o.offer.ReservationID)
	}
}

// reserved takes one off what a reservation has left.
func (a *applier) reserved(id string) {
	done := map[*model.InstanceType]bool{}
	for i := range a.s.Pools {
		for _, t := range a.s.Pools[i].Types {
			for j := range t.Offerings {
				if o := &t.Offerings[j]; !done[t] && o.ReservationID == id && o.ReservationLeft > 0 {
					o.ReservationLeft--
				}
			}
			done[t] = true
		}
	}
}

// run binds the pod to the node.
func (a *applier) run(n *model.Node, pod model.Pod) {
	p := a.pods[pod.Key()]
	pod.Planned, pod.From = "", ""
	supply(a.s, n, pod, p.Shape)
	occupy(n, p, pod)
}

// occupy binds one pod of an entry to a node that it may leave again.
func occupy(n *model.Node, p *model.Pending, pod model.Pod) {
	n.Requested = n.Requested.Plus(p.Shape.Requests)
	n.HostPorts = append(slices.Clone(n.HostPorts), p.Shape.HostPorts...)
	n.Attached = slices.Clone(n.Attached)
	for i := range n.Attached {
		d := &n.Attached[i]
		for _, v := range p.Shape.Volumes {
			if v.Driver == d.Driver {
				d.Own += v.Own
				d.Shared = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.Shared, v.Shared))))
			}
		}
	}
	n.Residents = append(slices.Clone(n.Residents), model.Resident{Peer: p.Peer, Anti: required(p.Shape, true), Count: 1})
	same := func(o model.Pending) bool {
		return o.Shape == p.Shape && o.Peer.Namespace == p.Peer.Namespace && slices.Equal(o.Peer.Labels, p.Peer.Labels)
	}
	n.Movable = slices.Clone(n.Movable)
	i := slices.IndexFunc(n.Movable, same)
	if i < 0 {
		i, n.Movable = len(n.Movable), append(n.Movable, model.Pending{Shape: p.Shape, Peer: p.Peer})
	}
	n.Movable[i].Pods = append(slices.Clone(n.Movable[i].Pods), pod)
	n.Disruption.Cost++
	n.Disruption.Empty = false
}

// settle leaves pending whom the plan has no place for, and counts what pools
// use.
func (a *applier) settle(plan *model.Plan) {
	places := Places(plan)
	var pending []model.Pending
	for _, p := range a.s.Pending {
		p.Pods = slices.DeleteFunc(slices.Clone(p.Pods), func(p model.Pod) bool { return places[p.Key()] != "" })
		if len(p.Pods) > 0 {
			pending = append(pending, p)
		}
	}
	a.s.Pending, a.s.Intents = pending, nil
	slices.SortFunc(a.s.Nodes, func(x, y model.Node) int { return strings.Compare(x.Name, y.Name) })
	use(a.s)
}

// use counts what the nodes of each pool use.
func use(s *model.Snapshot) {
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Usage = nil
		for _, n := range s.Nodes {
			if n.Pool == p.Name && !n.Deleting {
				p.Usage = p.Usage.Plus(n.Capacity)
			}
		}
		if p.Static != nil {
			count := func(deleting bool) int {
				return len(slices.DeleteFunc(slices.Clone(s.Nodes), func(n model.Node) bool { return n.Pool != p.Name || n.Deleting != deleting }))
			}
			p.Static = &model.Static{Replicas: p.Static.Replicas, Active: count(false), Leaving: count(true)}
		}
	}
}

// Spent is what all nodes of the situation cost.
func Spent(s *model.Snapshot) model.Price {
	sum := model.Price(0)
	for _, n := range s.Nodes {
		sum += n.Price
	}
	return sum
}

// Intents are the commands of the plan as what waits to be confirmed.
func Intents(plan *model.Plan) []model.Intent {
	var out []model.Intent
	for _, c := range plan.Commands {
		in := model.Intent{Reason: c.Reason}
		for _, t := range c.Nodes {
			in.Claims = append(in.Claims, t.Claim)
		}
		slices.Sort(in.Claims)
		out = append(out, in)
	}
	return out
}
