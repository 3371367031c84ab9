// Package solvetest judges plans without trusting the planner: an independent
// checker of every promise a Plan makes, and a twin that decides who can be
// placed by reading the rules literally.
package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// Check returns everything that is wrong with plan as an answer to s.
func Check(s *model.Snapshot, plan *model.Plan) []string {
	c := &checker{s: s, seen: map[string]int{}, shapes: map[string]*model.Shape{}}
	for _, p := range s.Pending {
		for _, pod := range p.Pods {
			c.shapes[pod.Key()] = p.Shape
		}
	}
	c.placements(plan)
	c.launches(plan)
	for _, v := range plan.Verdicts {
		for _, p := range v.Pods {
			c.seen[p.Key()]++
		}
		if v.String() == "" {
			c.fail("verdict of %v says nothing", v.Pods)
		}
	}
	for key := range c.shapes {
		if c.seen[key] != 1 {
			c.fail("pod %s is mentioned %d times", key, c.seen[key])
		}
	}
	if plan.Bound > plan.Cost {
		c.fail("bound %d exceeds cost %d", plan.Bound, plan.Cost)
	}
	c.removals(plan)
	slices.Sort(c.wrong)
	return c.wrong
}

type checker struct {
	s      *model.Snapshot
	seen   map[string]int
	shapes map[string]*model.Shape
	wrong  []string
}

func (c *checker) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (c *checker) placements(plan *model.Plan) {
	used := map[string]model.Resources{}
	for _, p := range plan.Placements {
		c.seen[p.Pod.Key()]++
		used[p.Node] = used[p.Node].Plus(c.shapes[p.Pod.Key()].Requests)
		i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == p.Node })
		if i < 0 {
			c.fail("pod %s is placed on node %s, which does not exist", p.Pod.Key(), p.Node)
			continue
		}
		n := &c.s.Nodes[i]
		if n.Deleting {
			c.fail("pod %s is placed on node %s, which is going away", p.Pod.Key(), p.Node)
		}
		if !Accepts(n.Labels, n.Taints, c.shapes[p.Pod.Key()]) {
			c.fail("node %s does not accept pod %s", p.Node, p.Pod.Key())
		}
	}
	for name, sum := range used {
		i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == name })
		if n := &c.s.Nodes[i]; !n.Requested.Plus(sum).Fits(n.Allocatable) {
			c.fail("node %s is overfull", name)
		}
	}
}

// Accepts reports whether a node whose labels and taints are settled takes
// pods of the shape.
func Accepts(labels model.Requirements, taints []model.Taint, shape *model.Shape) bool {
	if _, bad := model.Untolerated(firm(taints), shape.Tolerations); bad {
		return false
	}
	return slices.ContainsFunc(shape.Alternatives(), func(alt model.Requirements) bool {
		_, ok := labels.Satisfies(alt)
		return ok
	})
}

func (c *checker) launches(plan *model.Plan) {
	added := map[string]model.Resources{}
	cost := model.Price(0)
	for i := range plan.Launches {
		l := &plan.Launches[i]
		cost += l.Price
		for _, p := range l.Pods {
			c.seen[p.Key()]++
		}
		pool := c.pool(l.Pool)
		if pool == nil || len(l.Types) == 0 {
			c.fail("launch %d names no pool or no type", i)
			continue
		}
		added[l.Pool] = added[l.Pool].Plus(c.largest(pool, l))
		c.eachOutcome(i, pool, l)
	}
	if cost != plan.Cost {
		c.fail("launches cost %d, the plan says %d", cost, plan.Cost)
	}
	for name, sum := range added {
		pool := c.pool(name)
		for _, limit := range pool.Limits {
			if total := pool.Usage.At(limit.Resource) + sum.At(limit.Resource); total > limit.Max {
				c.fail("pool %s could reach %d of resource %d, its limit is %d", name, total, limit.Resource, limit.Max)
			}
		}
	}
}

func (c *checker) pool(name string) *model.Pool {
	for i := range c.s.Pools {
		if c.s.Pools[i].Name == name {
			return &c.s.Pools[i]
		}
	}
	return nil
}

// largest is the most a launch can add, whichever of its types it becomes.
func (c *checker) largest(pool *model.Pool, l *model.Launch) model.Resources {
	var out model.Resources
	for _, t := range pool.Types {
		if slices.Contains(l.Types, t.Name) {
			out = out.Max(t.Capacity)
		}
	}
	return out
}

// eachOutcome checks that the launch's pods run on whatever machine it becomes.
func (c *checker) eachOutcome(i int, pool *model.Pool, l *model.Launch) {
	cheapest := model.Price(-1)
	for _, t := range pool.Types {
		if !slices.Contains(l.Types, t.Name) {
			continue
		}
		any := false
		for j := range t.Offerings {
			o := &t.Offerings[j]
			if _, ok := o.Requirements.Intersects(l.Requirements); !ok || !o.Available || !slices.Contains(l.CapacityTypes, o.CapacityType) {
				continue
			}
			any = true
			if cheapest < 0 || o.Price < cheapest {
				cheapest = o.Price
			}
			c.outcome(i, pool, l, t, o)
		}
		if !any {
			c.fail("launch %d lists %s, which has no offering for it", i, t.Name)
		}
	}
	if cheapest != l.Price {
		c.fail("launch %d is priced %d, its cheapest offering costs %d", i, l.Price, cheapest)
	}
}

func (c *checker) outcome(i int, pool *model.Pool, l *model.Launch, t *model.InstanceType, o *model.Offering) {
	labels := l.Requirements.And(t.Requirements...).And(o.Requirements...)
	var sum model.Resources
	for _, p := range l.Pods {
		shape := c.shapes[p.Key()]
		sum = sum.Plus(shape.Requests)
		if !Accepts(labels, pool.Taints, shape) {
			c.fail("launch %d as %s in %s does not accept pod %s", i, t.Name, o.Zone, p.Key())
		}
	}
	for _, d := range c.s.Daemons {
		if Accepts(labels, pool.Taints, d.Shape) {
			sum = sum.Plus(d.Shape.Requests)
		}
	}
	if !sum.Fits(t.Allocatable) {
		c.fail("launch %d as %s is overfull", i, t.Name)
	}
}

func (c *checker) removals(plan *model.Plan) {
	taken := map[string]int{}
	for _, r := range plan.Removals {
		i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == r.Node })
		if i < 0 || !c.s.Nodes[i].Disruption.Empty || c.s.Nodes[i].Disruption.Blocked != "" {
			c.fail("node %s must not be removed", r.Node)
			continue
		}
		taken[c.s.Nodes[i].Pool]++
		if slices.ContainsFunc(plan.Placements, func(p model.Placement) bool { return p.Node == r.Node }) {
			c.fail("node %s is removed while pods are placed on it", r.Node)
		}
	}
	for name, n := range taken {
		if pool := c.pool(name); pool == nil || n > pool.Disruption.Allowed[model.Empty] {
			c.fail("pool %s: %d removals exceed its budget", name, n)
		}
	}
}
