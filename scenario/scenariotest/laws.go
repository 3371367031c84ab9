// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/scenario"
)

// Broken names the laws that a plan for s breaks. They hold for every plan,
// whoever made it:
//
//  1. every pending pod is placed, launched for, or has a verdict: once;
//  2. a pod goes only where taints, labels and room allow;
//  3. a launch's pods fit every type it may become;
//  4. whichever types the launches become, no limit is exceeded by them;
//  5. the cost is the sum of the launches, and the bound is not above it.
func Broken(s *model.Snapshot, plan *model.Plan) []string {
	l := &laws{s: s, plan: plan, shapes: map[string]*model.Shape{}}
	l.everyPodOnce()
	l.placements()
	for i := range plan.Launches {
		l.launch(&plan.Launches[i])
	}
	for i := range s.Pools {
		l.limits(&s.Pools[i])
	}
	l.cost()
	return l.broken
}

type laws struct {
	s      *model.Snapshot
	plan   *model.Plan
	shapes map[string]*model.Shape // by pod
	broken []string
}

func (l *laws) breaks(format string, args ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

func (l *laws) everyPodOnce() {
	seen := map[string]int{}
	count := func(pods []model.Pod) {
		for _, p := range pods {
			seen[p.Key()]++
		}
	}
	for _, p := range l.plan.Placements {
		count([]model.Pod{p.Pod})
	}
	for _, launch := range l.plan.Launches {
		count(launch.Pods)
	}
	for _, v := range l.plan.Verdicts {
		count(v.Pods)
	}
	for _, pending := range l.s.Pending {
		for _, p := range pending.Pods {
			l.shapes[p.Key()] = pending.Shape
			if seen[p.Key()] != 1 {
				l.breaks("pod %s is in the plan %d times", p.Key(), seen[p.Key()])
			}
			delete(seen, p.Key())
		}
	}
	for key := range seen {
		l.breaks("pod %s was not pending", key)
	}
}

func (l *laws) placements() {
	taken := map[string]model.Resources{}
	for _, p := range l.plan.Placements {
		i := slices.IndexFunc(l.s.Nodes, func(n model.Node) bool { return n.Name == p.Node })
		shape := l.shapes[p.Pod.Key()]
		if i < 0 || shape == nil {
			l.breaks("pod %s is placed on %s, which is no node", p.Pod.Key(), p.Node)
			continue
		}
		n := &l.s.Nodes[i]
		if t, bad := untolerated(n.Taints, shape); bad || n.Deleting {
			l.breaks("pod %s is placed on %s, which is deleting (%t) or has taint %s", p.Pod.Key(), p.Node, n.Deleting, t)
		}
		if !slices.ContainsFunc(shape.Alternatives(), func(alt model.Requirements) bool { _, ok := n.Labels.Satisfies(alt); return ok }) {
			l.breaks("pod %s is placed on %s against its labels", p.Pod.Key(), p.Node)
		}
		taken[p.Node] = taken[p.Node].Plus(l.allocated(shape, n.Allocatable))
		if !taken[p.Node].Fits(n.Allocatable.Minus(n.Requested.Minus(n.Leaving).Max(nil))) {
			l.breaks("node %s has no room for %s", p.Node, p.Pod.Key())
		}
	}
}

// allocated returns what the pod takes of what there is to allocate: of extended
// resources that there is nothing of it gets devices, if a DeviceClass serves them.
func (l *laws) allocated(s *model.Shape, have model.Resources) model.Resources {
	out := s.Requests
	for _, c := range s.Claims {
		for _, r := range c.Requests {
			if i := slices.Index(l.s.Resources, r.Resource); i >= 0 && have.At(i) == 0 {
				out = slices.Clone(out)
				out[i] = 0
			}
		}
	}
	return out
}

// untolerated ignores taints that only prefer.
func untolerated(taints []model.Taint, s *model.Shape) (model.Taint, bool) {
	firm := slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
	return model.Untolerated(firm, s.Tolerations)
}

func (l *laws) launch(launch *model.Launch) {
	pool := l.pool(launch.Pool)
	if pool == nil || len(launch.Types) == 0 || !slices.Contains(launch.Types, launch.Type) {
		l.breaks("launch in %s of %s: no such pool, or not among its types", launch.Pool, launch.Type)
		return
	}
	need := map[string]model.Resources{}
	for _, p := range launch.Pods {
		shape := l.shapes[p.Key()]
		if shape == nil {
			continue // law 1 has said so
		}
		for _, name := range launch.Types {
			if t := typeOf(pool, name); t != nil {
				need[name] = need[name].Plus(l.allocated(shape, t.Allocatable))
			}
		}
		if t, bad := untolerated(pool.Taints, shape); bad {
			l.breaks("pod %s does not tolerate %s of pool %s", p.Key(), t, pool.Name)
		}
		if !slices.ContainsFunc(shape.Alternatives(), func(alt model.Requirements) bool {
			_, ok := launch.Requirements.Compatible(alt, l.s.WellKnown)
			return ok
		}) {
			l.breaks("the launch for %s is at odds with what it requires", p.Key())
		}
	}
	for _, name := range launch.Types {
		if t := typeOf(pool, name); t == nil || !need[name].Fits(t.Allocatable) {
			l.breaks("the pods of a launch of %s do not fit %s", launch.Type, name)
		}
	}
}

func (l *laws) pool(name string) *model.Pool {
	i := slices.IndexFunc(l.s.Pools, func(p model.Pool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &l.s.Pools[i]
}

func typeOf(pool *model.Pool, name string) *model.InstanceType {
	i := slices.IndexFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return pool.Types[i]
}

func (l *laws) limits(pool *model.Pool) {
	used := pool.Usage
	launches := 0
	for _, launch := range l.plan.Launches {
		if launch.Pool != pool.Name {
			continue
		}
		launches++
		var most model.Resources
		for _, name := range launch.Types {
			if t := typeOf(pool, name); t != nil {
				most = most.Max(t.Capacity)
			}
		}
		used = used.Plus(most)
	}
	for _, limit := range pool.Limits {
		if launches > 0 && used.At(limit.Resource) > limit.Max {
			l.breaks("pool %s may exceed its limit of %s: %s of %s", pool.Name, l.s.Resources[limit.Resource],
				model.FormatQuantity(limit.Resource, used.At(limit.Resource)), model.FormatQuantity(limit.Resource, limit.Max))
		}
	}
}

func (l *laws) cost() {
	var sum model.Price
	for _, launch := range l.plan.Launches {
		sum += launch.Price
	}
	if sum != l.plan.Cost {
		l.breaks("the launches cost $%s, the plan says $%s", scenario.FormatPrice(sum), scenario.FormatPrice(l.plan.Cost))
	}
	if l.plan.Bound > l.plan.Cost {
		l.breaks("the bound $%s is above the cost $%s", scenario.FormatPrice(l.plan.Bound), scenario.FormatPrice(l.plan.Cost))
	}
}
