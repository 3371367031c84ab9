// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"karpenter/model"
)

// sizeLabel is a label whose values are numbers.
const sizeLabel = "size"

// odd adds what few clusters have: pools that launch nothing, labels compared as
// numbers, nodes that pods are leaving, pods that stand in for buffers.
func (g *generator) odd(d Draw, s *model.Snapshot) {
	s.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g.number(s)
	for i := range s.Pools {
		g.oddPool(d, s, &s.Pools[i])
	}
	for i := range s.Nodes {
		g.oddNode(d, s, &s.Nodes[i])
		for j := range s.Nodes[i].Movable {
			g.oddPods(s, &s.Nodes[i].Movable[j])
		}
	}
	for i := range s.Pending {
		g.oddShape(s.Pending[i].Shape)
		g.oddPods(s, &s.Pending[i])
		if g.maybe(8) {
			for j := range s.Pending[i].Pods {
				s.Pending[i].Pods[j].Buffer = s.Pending[i].Pods[j].Namespace + "/spare"
			}
		}
	}
	if d.Bound && g.maybe(25) && len(s.Nodes) > 0 {
		var claims []string
		for range 1 + g.IntN(2) {
			if n := pick(g, s.Nodes...); n.Claim != "" {
				claims = append(claims, n.Claim)
			}
		}
		slices.Sort(claims)
		if len(claims) > 0 {
			s.Intents = []model.Intent{{Reason: pick(g, model.Empty, model.Underutilized, model.Drifted), Claims: slices.Compact(claims)}}
		}
	}
}

// number gives types, and their nodes, a label that pods can bound.
func (g *generator) number(s *model.Snapshot) {
	s.WellKnown = model.NewLabelSet(model.LabelZone, model.LabelCapacityType, model.LabelArch, model.LabelInstanceType, model.LabelNodePool, sizeLabel)
	sizes := map[string]model.Requirement{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			size, known := sizes[t.Name]
			if !known {
				size = model.NewRequirement(sizeLabel, model.In, strconv.Itoa(1+g.IntN(4)))
				sizes[t.Name] = size
			}
			t.Requirements = t.Requirements.Without(sizeLabel).And(size)
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if kind, _ := n.Labels.Value(model.LabelInstanceType); sizes[kind].Key != "" {
			n.Labels = n.Labels.And(sizes[kind])
		}
	}
}

func (g *generator) oddPool(d Draw, s *model.Snapshot, p *model.Pool) {
	switch g.IntN(8) {
	case 0:
		if p.Static == nil {
			p.Unavailable = "not ready"
		}
	case 1:
		p.Limits = append(p.Limits[:0:0], model.Limit{Resource: model.CPU, Max: p.Usage.At(model.CPU)})
	case 2:
		p.Types = slices.Clone(p.Types)
		for i, t := range p.Types {
			t = new(*t)
			t.Offerings = slices.Clone(t.Offerings)
			for j := range t.Offerings {
				t.Offerings[j].Available = t.Offerings[j].Available && t.Offerings[j].ReservationID != ""
			}
			p.Types[i] = t
		}
	}
	if g.maybe(15) {
		p.Taints = append(slices.Clone(p.Taints), model.Taint{Key: "level", Value: strconv.Itoa(g.IntN(4)), Effect: model.NoSchedule})
	}
	if d.Reserved && g.maybe(20) {
		t := new(*p.Types[0])
		t.Offerings = append(slices.Clone(t.Offerings), model.Offering{
			Zone: "a", CapacityType: model.Reserved, ReservationID: "cr-full", Full: true,
			Requirements: model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, "a"), model.NewRequirement(model.LabelCapacityType, model.In, model.Reserved)),
		})
		t.Requirements = t.Requirements.Without(model.LabelCapacityType).And(model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand, model.Spot, model.Reserved))
		p.Types = slices.Clone(p.Types)
		p.Types[0] = t
	}
	p.Template = pick(g, "", "a", "b")
	if !d.Bound {
		return
	}
	if g.maybe(20) {
		payback := pick(g, time.Duration(0), time.Hour, 100*time.Hour)
		p.Aims.Payback = &payback
	}
	if g.maybe(20) {
		threshold := pick(g, 0, 0.05, 0.5)
		p.Aims.Threshold = &threshold
	}
	if g.maybe(15) {
		p.Disruption.Halted, p.Disruption.Probing = "instances do not become nodes", g.maybe(50)
		p.Disruption.Allowed[model.Drifted] = 0
		if p.Disruption.Probing {
			p.Disruption.Allowed[model.Drifted] = 1
		}
	}
	if p.Disruption.Allowed[model.Unhealthy] = g.IntN(3); p.Static != nil && g.maybe(30) {
		p.Static.Pending = g.IntN(p.Static.Active + 1)
	}
}

func (g *generator) oddNode(d Draw, s *model.Snapshot, n *model.Node) {
	n.Template = pick(g, "", "a", "b")
	if n.Registered && g.maybe(8) {
		n.Closed, n.Disruption.Blocked = true, "several Nodes have its provider ID"
	}
	if left := n.Requested.At(model.CPU) - n.DaemonRequested.At(model.CPU); left > 0 && g.maybe(15) && len(n.Movable) == 0 {
		n.Leaving = model.Resources{g.Int64N(left + 1)}
	}
	if !d.Bound || n.Claim == "" {
		return
	}
	n.Disruption.Fresh = g.maybe(15)
	if g.maybe(50) {
		n.Disruption.Quiet = s.Now.Add(-time.Duration(g.IntN(100)) * time.Minute)
	}
	n.Disruption.Startup = time.Duration(g.IntN(60)) * time.Second
	if g.maybe(8) {
		n.Disruption.Unhealthy, n.Disruption.Reboot, n.Disruption.Severity = "Ready is False", g.maybe(30), float64(g.IntN(3))
	}
}

func (g *generator) oddShape(s *model.Shape) {
	if g.maybe(30) {
		s.Priority = int32(g.IntN(3) * 100)
	}
	switch g.IntN(12) {
	case 0:
		s.Selector = s.Selector.And(model.NewRequirement(sizeLabel, model.Gt, strconv.Itoa(g.IntN(4))))
	case 1:
		s.Selector = s.Selector.And(model.NewRequirement(sizeLabel, model.Lt, strconv.Itoa(1+g.IntN(5))))
	case 2:
		s.Selector = s.Selector.And(model.NewRequirement("team", model.NotIn, "red"), model.NewRequirement("team", model.Exists))
	}
	switch g.IntN(14) {
	case 0:
		s.Tolerations = append(s.Tolerations, model.Toleration{Key: "dedicated", Value: pick(g, "x", "y"), Effect: pick(g, "", model.NoSchedule)})
	case 1:
		s.Tolerations = append(s.Tolerations, model.Toleration{Exists: true, Effect: pick(g, model.NoExecute, model.PreferNoSchedule)})
	case 2, 3:
		s.Tolerations = append(s.Tolerations, model.Toleration{Key: "level", Compare: pick(g, model.Greater, model.Less), Value: strconv.Itoa(g.IntN(4))})
	}
}

func (g *generator) oddPods(s *model.Snapshot, p *model.Pending) {
	for i := range p.Pods {
		pod := &p.Pods[i]
		if g.maybe(60) {
			pod.Created = s.Now.Add(-time.Duration(g.IntN(100)) * time.Minute)
		}
		if len(p.Shape.VolumeTerms) > 0 {
			pod.Claims = fmt.Sprint(pod.Namespace, "/data")
		}
	}
}
