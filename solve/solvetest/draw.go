// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"karpenter/model"
)

// Draw says what situations hold besides resources, labels, taints, weights
// and limits.
type Draw struct {
	Spread, Affinity, Preferences, Ports, Volumes, MinValues, Reserved bool

	Flight bool // nodes in flight, some not settled for a zone, and pods planned on nodes
	Bound  bool // nodes with pods that could run elsewhere, and what speaks for and against taking nodes away
	Crowd  bool // more of them

	TypeLimits bool // types that limit volumes
	Refused    bool // bound pods for which nothing can be planned
	Groups     bool // pods of PodGroups that start together
	Workloads  bool // pods that others control, and pools that spread them over spot pools
	Devices    bool // types and nodes with devices, and pods with claims
	Served     bool // with Devices: an extended resource that some of them serve to pods without claims
	Money      bool // pools whose nodes cost more than their instances, and what these pay for preferences
	Scarce     bool // more pods, larger types, and pools with limits that leave some of the pods without a node
	Odd        bool // what few clusters have, such as pools that launch nothing
}

// Everything draws all there is.
func Everything() Draw {
	return Draw{Spread: true, Affinity: true, Preferences: true, Ports: true, Volumes: true, MinValues: true, Reserved: true, Flight: true, Money: true, Workloads: true}
}

// Situation draws a small random Snapshot.
func (d Draw) Situation(rng *rand.Rand) *model.Snapshot {
	g := &generator{rng}
	s := g.situation()
	if d.Scarce {
		g.limit(s)
	}
	for i := range s.Pending {
		p := &s.Pending[i]
		p.Peer = g.peer()
		for j := range p.Pods {
			p.Pods[j].Namespace = p.Peer.Namespace
		}
		g.shapeMore(d, p)
	}
	for i := range s.Nodes {
		g.nodeMore(d, &s.Nodes[i])
	}
	for i := range s.Daemons {
		if d.Ports && g.maybe(40) {
			s.Daemons[i].Shape.HostPorts = []model.HostPort{g.port()}
		}
	}
	for i := range s.Pools {
		if p := &s.Pools[i]; d.MinValues && g.maybe(30) {
			r := model.NewRequirement(pick(g, model.LabelInstanceType, model.LabelArch, model.LabelZone), model.Exists)
			r.MinValues = 2
			p.Requirements = p.Requirements.And(r)
		}
	}
	if d.Reserved {
		g.reserve(s)
	}
	if d.TypeLimits {
		g.limitVolumes(s)
	}
	if d.Devices {
		g.equip(s)
	}
	if d.Served {
		g.serve(s)
	}
	if d.Money {
		g.price(s)
	}
	if d.Flight {
		g.fly(s)
	}
	if d.Bound {
		g.inhabit(d, s)
	}
	if d.Workloads {
		g.control(s)
	}
	if d.Groups {
		g.group(s)
	}
	if d.Odd {
		g.odd(d, s)
	}
	return s
}

// group makes some of the pods that need a place members of PodGroups: of some that
// are complete, and of some that lack pods or are rejected.
func (g *generator) group(s *model.Snapshot) {
	sizes := make([]int, 1+g.IntN(3))
	for i := range s.Pending {
		for j := range s.Pending[i].Pods {
			if n := g.IntN(2 * len(sizes)); n < len(sizes) {
				s.Pending[i].Pods[j].Group = fmt.Sprintf("default/g%d", n)
				sizes[n]++
			}
		}
	}
	for n, size := range sizes {
		group := model.PodGroup{Name: fmt.Sprintf("default/g%d", n), MinCount: g.IntN(size + 2)}
		if g.maybe(20) {
			group.Running = g.IntN(3)
		}
		if g.maybe(10) {
			group.Refused = "it does not exist"
		}
		if g.maybe(15) {
			group.Waits = "not all of its nodes could be had"
		}
		if g.maybe(15) && len(s.Pools) > 0 && len(s.Pools[0].Types) > 0 {
			group.Avoid = []model.Place{{Type: pick(g, s.Pools[0].Types...).Name, Zone: pick(g, "a", "b")}}
		}
		if g.maybe(25) {
			group.TopologyKey, group.MinCount = model.LabelZone, max(group.MinCount, 1)
			for i := range s.Nodes {
				if len(group.On) < group.Running && g.maybe(30) {
					group.On = append(group.On, s.Nodes[i].Name)
				}
			}
			slices.Sort(group.On)
		}
		s.Groups = append(s.Groups, group)
	}
}

func (g *generator) peer() model.Peer {
	p := model.Peer{Namespace: "default", Labels: []model.Label{{Key: "app", Value: pick(g, "web", "db", "web")}}}
	if g.maybe(15) {
		p.Namespace = "other"
	}
	p.NamespaceLabels = []model.Label{{Key: "kubernetes.io/metadata.name", Value: p.Namespace}}
	if g.maybe(20) {
		p.Labels = append(p.Labels, model.Label{Key: "tier", Value: "x"})
	}
	return p
}

// selector picks the pods of p more often than not.
func (g *generator) selector(p *model.Peer) model.PodSelector {
	s := model.PodSelector{Namespaces: []string{p.Namespace}}
	switch n := g.IntN(100); {
	case n < 60:
		s.Labels = model.NewRequirements(model.NewRequirement("app", model.In, p.Labels[0].Value))
	case n < 75:
		s.Labels = model.NewRequirements(model.NewRequirement("app", model.In, pick(g, "web", "db")))
	case n < 85:
		s.Labels = model.NewRequirements(pick(g,
			model.NewRequirement("app", model.In, "web", "db"), model.NewRequirement("app", model.NotIn, "web"), model.NewRequirement("tier", model.Exists)))
	case n < 90:
		s.Nothing = true
	}
	switch n := g.IntN(100); {
	case n < 10:
		s.Namespaces, s.ByNamespace = nil, true
		if g.maybe(50) {
			s.NamespaceLabels = model.NewRequirements(model.NewRequirement("kubernetes.io/metadata.name", model.In, pick(g, "default", "other")))
		}
	case n < 20:
		s.Namespaces = []string{"default", "other"}
	}
	return s
}

func (g *generator) spread(p *model.Peer) model.Spread {
	return model.Spread{
		Key:     pick(g, model.LabelZone, model.LabelZone, model.LabelZone, model.LabelHostname, model.LabelHostname, model.LabelCapacityType, "team"),
		MaxSkew: 1 + g.IntN(2), MinDomains: pick(g, 0, 0, 0, 2, 3), Select: g.selector(p),
		AnyNode: g.maybe(15), HonorTaints: g.maybe(15),
	}
}

func (g *generator) term(p *model.Peer) model.PodTerm {
	return model.PodTerm{
		Key:    pick(g, model.LabelZone, model.LabelZone, model.LabelHostname, model.LabelHostname, model.LabelArch, model.LabelCapacityType),
		Select: g.selector(p), Anti: g.maybe(55),
	}
}

func (g *generator) port() model.HostPort {
	return model.HostPort{IP: pick(g, "0.0.0.0", "0.0.0.0", "10.0.0.1"), Protocol: pick(g, "TCP", "TCP", "UDP"), Port: int32(80 + g.IntN(2))}
}

// shapeMore adds what a pod has to do with others, its ports and volumes.
func (g *generator) shapeMore(d Draw, p *model.Pending) {
	s := p.Shape
	if d.Spread && g.maybe(45) {
		for range 1 + g.IntN(2) {
			s.Spread = append(s.Spread, g.spread(&p.Peer))
		}
	}
	if d.Affinity && g.maybe(40) {
		for range 1 + g.IntN(2) {
			s.PodTerms = append(s.PodTerms, g.term(&p.Peer))
		}
	}
	if d.Preferences && g.maybe(50) {
		g.prefer(p)
	}
	if d.Ports && g.maybe(30) {
		s.HostPorts = []model.HostPort{g.port()}
	}
	if d.Volumes && g.maybe(40) {
		s.Volumes = []model.Volumes{{Driver: "ebs", Own: g.IntN(3)}}
		if g.maybe(30) {
			s.Volumes[0].Shared = []string{"default/" + pick(g, "a", "b")}
		}
		if g.maybe(40) {
			s.VolumeTerms = []model.Requirements{model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, pick(g, "a", "b", "c")))}
		}
	}
}

func (g *generator) prefer(p *model.Pending) {
	s := p.Shape
	switch g.IntN(3) {
	case 0:
		s.Preferences = []model.Preference{{Weight: int32(2 + g.IntN(50)), Term: model.NewRequirements(g.demand())}}
		if g.maybe(50) {
			s.Preferences = append(s.Preferences, model.Preference{Weight: 1, Term: model.NewRequirements(g.demand())})
		}
	case 1:
		c := g.spread(&p.Peer)
		c.Soft = true
		s.Spread = append(s.Spread, c)
	case 2:
		t := g.term(&p.Peer)
		t.Weight = int32(1 + g.IntN(100))
		s.PodTerms = append(s.PodTerms, t)
	}
}

// limitVolumes has some types limit how many volumes their nodes attach.
func (g *generator) limitVolumes(s *model.Snapshot) {
	done := map[*model.InstanceType]bool{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			if !done[t] && g.maybe(60) {
				t.VolumeLimits = []model.VolumeLimit{{Driver: "ebs", Most: g.IntN(5)}}
			}
			done[t] = true
		}
	}
}

// nodeMore says what runs on a node.
func (g *generator) nodeMore(d Draw, n *model.Node) {
	n.Labels = n.Labels.And(model.NewRequirement(model.LabelHostname, model.In, n.Name))
	for range g.IntN(3) {
		r := model.Resident{Peer: g.peer(), Count: 1 + g.IntN(2), Terminating: g.maybe(10)}
		if d.Affinity && g.maybe(25) {
			t := g.term(&r.Peer)
			t.Anti = true
			r.Anti, r.Count = []model.PodTerm{t}, 1
		}
		if d.Spread || d.Affinity {
			n.Residents = append(n.Residents, r)
		}
	}
	if d.Ports && g.maybe(25) {
		n.HostPorts = []model.HostPort{g.port()}
	}
	if d.Volumes && g.maybe(70) {
		a := model.Attached{Driver: "ebs", Limit: 1 + g.IntN(5), Own: g.IntN(2)}
		if g.maybe(30) {
			a.Shared = []string{"default/a"}
		}
		n.Attached = []model.Attached{a}
	}
}

// limit has more pods need a place, of which limits leave some without a node, and some types
// take more of them.
func (g *generator) limit(s *model.Snapshot) {
	for i := range s.Pending {
		p := &s.Pending[i]
		for range g.IntN(12) {
			pod := p.Pods[0]
			pod.Name = fmt.Sprintf("pod-%d-%d", i, len(p.Pods))
			pod.UID = pod.Name
			p.Pods = append(p.Pods, pod)
		}
	}
	for _, t := range s.Pools[0].Types {
		if g.maybe(50) {
			t.Capacity, t.Allocatable = t.Capacity.Times(3), t.Allocatable.Times(3)
			for i := range t.Offerings {
				t.Offerings[i].Price *= 3
			}
		}
	}
	for i := range s.Pools {
		if g.maybe(70) {
			s.Pools[i].Limits = []model.Limit{{Resource: model.CPU, Max: 1000 * int64(2+g.IntN(20))}}
		}
	}
}

// reserve gives some types an offering that is paid for already. Two types may
// share a reservation.
func (g *generator) reserve(s *model.Snapshot) {
	done := map[*model.InstanceType]bool{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			if done[t] || !g.maybe(35) {
				done[t] = true
				continue
			}
			done[t] = true
			n := g.IntN(2)
			t.Offerings = append(t.Offerings, model.Offering{
				Zone: "a", CapacityType: model.Reserved, ReservationID: fmt.Sprint("cr-", n), ReservationLeft: int64(1 + n), Available: true,
				Requirements: model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, "a"),
					model.NewRequirement(model.LabelCapacityType, model.In, model.Reserved)),
			})
			t.Requirements = t.Requirements.Without(model.LabelCapacityType).And(
				model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand, model.Spot, model.Reserved))
		}
	}
}

// price has nodes of some pools cost more than their instances, and some pools pay
// more or less for what pods prefer than others.
func (g *generator) price(s *model.Snapshot) {
	for i := range s.Pools {
		p := &s.Pools[i]
		if g.maybe(50) {
			p.Extras = []model.Extra{{Name: "agent", Price: pick[model.Price](g, 1, 100, 5000)}}
			if g.maybe(30) {
				p.Extras = append(p.Extras, model.Extra{Name: "licence", Price: 40, VCPU: true}, model.Extra{Name: "address", Price: 60, Zone: "a"})
			}
			p.Types = slices.Clone(p.Types)
			for j := range p.Types {
				p.Types[j] = p.Types[j].With(p.Extras)
			}
		}
		if g.maybe(30) {
			premium := pick(g, 0, 0.5, 1)
			p.Aims.PreferencePremium = &premium
		}
		if g.maybe(30) {
			allowance := pick[model.Price](g, 0, 500, 20_000)
			p.Aims.PreferenceAllowance = &allowance
		}
		if g.maybe(25) {
			p.Aims.OnDemandShare = pick(g, 0.3, 0.5, 1)
		}
	}
}

// control has pods belong to a few workloads, and some pools ask that these, and
// their own nodes, are spread over spot pools.
func (g *generator) control(s *model.Snapshot) {
	all := [][]model.Pending{s.Pending}
	for i := range s.Nodes {
		all = append(all, s.Nodes[i].Movable)
	}
	for _, some := range all {
		for i := range some {
			for j := range some[i].Pods {
				some[i].Pods[j].Workload = pick(g, "web", "web", "db", "")
			}
		}
	}
	for i := range s.Pools {
		if g.maybe(30) {
			share := pick(g, 0.2, 0.5, 1)
			s.Pools[i].Aims.MaxSpotPoolShare = &share
		}
	}
}

// fly has nodes that are on their way: a claim that is not launched may become
// an instance in any of several zones. What earlier plans sent there is planned.
func (g *generator) fly(s *model.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Deleting || !g.maybe(50) {
			continue
		}
		n.Registered, n.Initialized, n.Requested, n.Residents, n.HostPorts, n.Attached = false, false, nil, nil, nil, nil
		n.Labels = n.Labels.Without(model.LabelHostname)
		if g.maybe(50) {
			n.Labels = n.Labels.Without(model.LabelZone).And(model.NewRequirement(model.LabelZone, model.In, "a", pick(g, "b", "c")))
		}
	}
	for i := range s.Pending {
		for j := range s.Pending[i].Pods {
			if len(s.Nodes) > 0 && g.maybe(30) {
				s.Pending[i].Pods[j].Planned = pick(g, s.Nodes...).Name
			}
		}
	}
}
