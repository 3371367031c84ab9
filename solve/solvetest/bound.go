// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// inhabit has a cluster where something could be removed: nodes as they were
// launched, with pods that the scheduler bound there, and pools with budgets and
// policies.
func (g *generator) inhabit(d Draw, s *model.Snapshot) {
	s.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Pending = s.Pending[:min(len(s.Pending), max(0, g.IntN(4)-1))]
	s.Nodes = nil
	for i := range s.Pools {
		g.disruption(&s.Pools[i].Disruption)
		if g.maybe(6) {
			s.Pools[i].Static, s.Pools[i].Unavailable = &model.Static{Replicas: 1 + g.IntN(4)}, "static"
		}
	}
	nodes := 2 + g.IntN(5)
	if d.Crowd {
		nodes += 8
	}
	for i := range nodes {
		g.bought(d, s, fmt.Sprintf("node-%02d", i))
	}
	if g.maybe(20) {
		g.foreign(s)
	}
	g.populate(d, s)
	for i := range s.Nodes {
		g.grounds(s, &s.Nodes[i])
	}
	if d.Groups {
		g.tie(s)
	}
	use(s)
}

// tie has nodes run pods of PodGroups whose pods are disrupted together. Those of empty nodes
// are ending.
func (g *generator) tie(s *model.Snapshot) {
	for i := range s.Nodes {
		d := &s.Nodes[i].Disruption
		for k := range 2 {
			if g.maybe(30) {
				d.Together = append(d.Together, fmt.Sprintf("default/whole-%d", k))
			}
		}
	}
	s.Groups = append(s.Groups, model.PodGroup{Name: "default/whole-0", MinCount: 2, Running: 1 + g.IntN(4)})
}

func (g *generator) disruption(d *model.Disruption) {
	d.Allowed = map[model.Reason]int{}
	generous := g.maybe(60)
	for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		d.Allowed[r] = g.IntN(4)
		if generous {
			d.Allowed[r] = 10
		}
	}
	d.Policy = pick(g, "", "", model.WhenEmptyOrUnderutilized, model.WhenEmpty, model.Balanced, model.Balanced)
	d.Never = g.maybe(6)
}

// bought adds a node that some pool launched, if it can launch any.
func (g *generator) bought(d Draw, s *model.Snapshot, name string) {
	pool := &s.Pools[g.IntN(len(s.Pools))]
	t := pick(g, pool.Types...)
	offers := slices.DeleteFunc(slices.Clone(t.Offerings), func(o model.Offering) bool {
		_, ok := pool.Requirements.Intersects(o.Requirements)
		return !ok && !g.maybe(5) // the pool wanted something else then
	})
	if len(offers) == 0 {
		return
	}
	o := pick(g, offers...)
	labels := map[string]string{model.LabelNodePool: pool.Name, model.LabelHostname: name, "team": pick(g, "red", "blue")}
	for _, r := range pool.Requirements.And(t.Requirements...).And(o.Requirements...) {
		if !r.Complement && len(r.Values) > 0 {
			labels[r.Key] = pick(g, r.Values...)
		}
	}
	n := model.Node{
		Name: name, Claim: name, Pool: pool.Name, Registered: true, Initialized: g.maybe(88), Deleting: g.maybe(7),
		Labels: model.LabelRequirements(labels), Taints: pool.Taints,
		Capacity: t.Capacity, Allocatable: t.Allocatable, Price: o.Price,
	}
	if d.Volumes && g.maybe(70) {
		n.Attached = []model.Attached{{Driver: "ebs", Limit: 1 + g.IntN(5)}}
	}
	for _, x := range s.Daemons {
		if accepts(n.Labels, n.Taints, x.Shape) {
			n.DaemonRequested = n.DaemonRequested.Plus(x.Shape.Requests)
			n.HostPorts = append(n.HostPorts, x.Shape.HostPorts...)
		}
	}
	n.Requested = n.DaemonRequested
	s.Nodes = append(s.Nodes, n)
}

// foreign adds a node that is not ours.
func (g *generator) foreign(s *model.Snapshot) {
	s.Nodes = append(s.Nodes, model.Node{
		Name: "foreign", Registered: true, Initialized: true,
		Capacity: model.Resources{3000, 8 << 30, 5, 0, 1}, Allocatable: model.Resources{3000, 8 << 30, 5},
		Labels: model.LabelRequirements(map[string]string{model.LabelZone: pick(g, "a", "b"), model.LabelArch: "amd64", model.LabelHostname: "foreign"}),
	})
	slices.SortFunc(s.Nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
}

// populate binds pods of a few kinds to nodes, as the scheduler would.
func (g *generator) populate(d Draw, s *model.Snapshot) {
	var sites []*site
	for i := range s.Nodes {
		sites = append(sites, nodeSite(&s.Nodes[i]))
	}
	for k := range 1 + g.IntN(3) {
		p := &model.Pending{Shape: g.shape(fmt.Sprintf("bound-%d", k), 2000), Peer: g.peer()}
		g.shapeMore(d, p)
		if d.Devices {
			g.claim(p.Shape)
		}
		if d.Refused && g.maybe(40) {
			p.Shape.Refused = []string{"resourceClaims"}
		}
		for i := range 2*len(s.Nodes) + g.IntN(8) {
			pod := model.Pod{Namespace: p.Peer.Namespace, Name: fmt.Sprintf("bound-%d-%d", k, i), UID: fmt.Sprintf("bound-%d-%d", k, i)}
			if len(s.Nodes) == 0 {
				continue
			}
			at := g.IntN(len(s.Nodes))
			if n := &s.Nodes[at]; takes(n, p.Shape) && refusal(sites, p, sites[at]) == "" && supply(s, n, pod, p.Shape) {
				occupy(n, p, pod)
				sites[at].bind(p)
			}
		}
	}
}

// takes reports whether the node has room for a pod and suits it.
func takes(n *model.Node, s *model.Shape) bool {
	shapes := []*model.Shape{s}
	return accepts(n.Labels, n.Taints, s) && n.Requested.Plus(s.Requests).Fits(n.Allocatable) && !clash(n.HostPorts, shapes) && !overAttached(n, shapes)
}

// grounds says what speaks for and against taking the node away. The pods of a
// node that is going away are pending.
func (g *generator) grounds(s *model.Snapshot, n *model.Node) {
	if n.Claim == "" {
		n.Movable = nil
		return
	}
	if n.Deleting {
		n.Stuck = g.maybe(30)
	}
	switch {
	case n.Stuck && g.maybe(50): // its pods keep it
		n.Movable = nil
	case n.Deleting:
		for _, m := range n.Movable {
			for i := range m.Pods {
				m.Pods[i].From = n.Name
			}
			s.Pending = append(s.Pending, m)
		}
		n.Movable, n.Residents = nil, nil
	}
	d := model.NodeDisruption{Cost: 1 + n.Disruption.Cost, Consolidatable: g.maybe(80)}
	d.Settling = !d.Consolidatable && g.maybe(70)
	if g.maybe(30) {
		d.Since = s.Now.Add(-time.Duration(g.IntN(1000)) * time.Minute)
		d.PodsEnd = s.Now.Add(time.Duration(g.IntN(1000)) * time.Minute)
	}
	if g.maybe(15) {
		d.Drifted = s.Now.Add(-time.Duration(1+g.IntN(100)) * time.Minute)
	}
	if ct, _ := n.Labels.Value(model.LabelCapacityType); ct == model.Spot && g.maybe(20) {
		d.Advised = s.Now.Add(-time.Duration(1+g.IntN(100)) * time.Minute)
	}
	d.Returned = g.maybe(6)
	if g.maybe(6) {
		d.Blocked = "blocked"
	}
	if g.maybe(10) {
		d.Held, d.Deadline = "held", g.maybe(50)
		if more := n.Requested.Plus(model.Resources{100, 0, 1}); more.Fits(n.Allocatable) {
			n.Requested = more
		}
	}
	d.Empty = len(n.Movable) == 0 && d.Held == "" && !n.Deleting
	n.Disruption = d
}
