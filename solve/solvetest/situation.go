// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"math/rand/v2"

	"karpenter/model"
)

// situation draws what every Draw has: types, zones, prices, taints, labels
// left open by pools, weights, limits, nodes in every state, daemons, affinity
// alternatives.
func (g *generator) situation() *model.Snapshot {
	s := &model.Snapshot{
		Resources: model.NewAxis().Names(),
		WellKnown: model.NewLabelSet(model.LabelZone, model.LabelCapacityType, model.LabelArch, model.LabelInstanceType, model.LabelNodePool),
	}
	types := g.types()
	for i := range 1 + g.IntN(3) {
		s.Pools = append(s.Pools, g.pool(fmt.Sprintf("pool-%d", i), types))
	}
	for i := range g.IntN(4) {
		s.Nodes = append(s.Nodes, g.node(fmt.Sprintf("node-%d", i), s.Pools, types))
	}
	for i := range g.IntN(2) {
		s.Daemons = append(s.Daemons, model.Daemon{Name: fmt.Sprintf("d/daemon-%d", i), Shape: g.shape("daemon", 200)})
	}
	for i := range 1 + g.IntN(4) {
		p := model.Pending{Shape: g.shape(fmt.Sprintf("shape-%d", i), 3000)}
		for j := range 1 + g.IntN(6) {
			name := fmt.Sprintf("pod-%d-%d", i, j)
			p.Pods = append(p.Pods, model.Pod{Namespace: "default", Name: name, UID: name})
		}
		s.Pending = append(s.Pending, p)
	}
	return s
}

type generator struct{ *rand.Rand }

func (g *generator) maybe(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) types() []*model.InstanceType {
	var out []*model.InstanceType
	for i := range 2 + g.IntN(4) {
		cpu, memory := int64(1000*(1+g.IntN(6))), int64(1+g.IntN(16))<<30
		t := &model.InstanceType{
			Name:        fmt.Sprintf("type-%d", i),
			Capacity:    model.Resources{cpu, memory, 5, 0, 1},
			Allocatable: model.Resources{cpu - 50, memory - 1<<28, int64(2 + g.IntN(8))},
		}
		for _, zone := range []string{"a", "b", "c"}[:1+g.IntN(3)] {
			for _, ct := range []string{model.OnDemand, model.Spot}[:1+g.IntN(2)] {
				t.Offerings = append(t.Offerings, model.Offering{
					Zone: zone, CapacityType: ct, Available: !g.maybe(15), Price: model.Price(1 + g.Int64N(int64(cpu))),
					Requirements: model.NewRequirements(
						model.NewRequirement(model.LabelZone, model.In, zone),
						model.NewRequirement(model.LabelCapacityType, model.In, ct)),
				})
			}
		}
		t.Requirements = model.NewRequirements(
			model.NewRequirement(model.LabelInstanceType, model.In, t.Name),
			model.NewRequirement(model.LabelArch, model.In, pick(g, "amd64", "amd64", "arm64")),
			model.NewRequirement(model.LabelZone, model.In, "a", "b", "c"),
			model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand, model.Spot))
		out = append(out, t)
	}
	return out
}

func (g *generator) pool(name string, types []*model.InstanceType) model.Pool {
	p := model.Pool{Name: name, Weight: int32(g.IntN(2)), Types: types,
		Disruption: model.Disruption{Allowed: map[model.Reason]int{model.Empty: g.IntN(3)}}}
	if g.maybe(30) {
		p.Taints = append(p.Taints, model.Taint{Key: "dedicated", Value: "x", Effect: pick(g, model.NoSchedule, model.NoExecute, model.PreferNoSchedule)})
	}
	if g.maybe(30) {
		p.Requirements = p.Requirements.And(model.NewRequirement(model.LabelZone, model.In, "a"))
	}
	if g.maybe(50) { // a label the pool defines, or leaves open
		p.Requirements = p.Requirements.And(pick(g,
			model.NewRequirement("team", model.In, "red"),
			model.NewRequirement("team", model.In, "red", "blue"),
			model.NewRequirement("team", model.Exists)))
	}
	if g.maybe(40) {
		p.Limits = append(p.Limits, model.Limit{Resource: model.CPU, Max: int64(g.IntN(12)) * 1000})
	}
	if g.maybe(20) {
		p.Limits = append(p.Limits, model.Limit{Resource: model.Nodes, Max: int64(g.IntN(4))})
	}
	return p
}

func (g *generator) node(name string, pools []model.Pool, types []*model.InstanceType) model.Node {
	p, t := pick(g, pools...), pick(g, types...)
	n := model.Node{Name: name, Pool: p.Name, Claim: name, Registered: true, Initialized: g.maybe(70), Deleting: g.maybe(15),
		Capacity: t.Capacity, Allocatable: t.Allocatable, Requested: model.Resources{int64(g.IntN(2000)), 0, int64(g.IntN(2))},
		Disruption: model.NodeDisruption{Empty: g.maybe(50), Consolidatable: g.maybe(70)},
		Labels: model.LabelRequirements(map[string]string{
			model.LabelZone: pick(g, "a", "b", "c"), model.LabelCapacityType: model.OnDemand, model.LabelInstanceType: t.Name,
			model.LabelArch: pick(g, "amd64", "arm64"), model.LabelNodePool: p.Name, "team": pick(g, "red", "blue")})}
	if g.maybe(20) {
		n.Disruption.Blocked = "blocked"
	}
	if g.maybe(20) {
		n.Taints = p.Taints
	}
	return n
}

func (g *generator) shape(key string, maxCPU int64) *model.Shape {
	s := &model.Shape{Key: key, Requests: model.Resources{1 + g.Int64N(maxCPU), g.Int64N(4 << 30), 1}}
	if g.maybe(30) {
		s.Selector = s.Selector.And(g.demand())
	}
	if g.maybe(30) {
		for range 1 + g.IntN(2) {
			s.Terms = append(s.Terms, model.NewRequirements(g.demand()))
		}
	}
	if g.maybe(40) {
		s.Tolerations = append(s.Tolerations, model.Toleration{Key: "dedicated", Exists: true})
	}
	return s
}

func (g *generator) demand() model.Requirement {
	return pick(g,
		model.NewRequirement(model.LabelZone, model.In, "a"),
		model.NewRequirement(model.LabelZone, model.NotIn, "a"),
		model.NewRequirement(model.LabelArch, model.In, "arm64"),
		model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand),
		model.NewRequirement("team", model.In, "red"),
		model.NewRequirement("team", model.In, "blue"),
		model.NewRequirement("team", model.DoesNotExist),
		model.NewRequirement("nobody", model.Exists),
		model.NewRequirement("nobody", model.NotIn, "x"))
}
