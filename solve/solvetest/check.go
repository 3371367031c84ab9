// SPDX-License-Identifier: Apache-2.0

// Package solvetest judges plans without trusting the planner.
//
//   - Draw makes random situations, small ones with few labels, so that every
//     rule matters; Shrink finds the least part of one that still fails.
//   - Check says which promises a plan breaks. Rules between pods are read as
//     kube-scheduler reads them: there must be an order in which it could bind
//     every pod to its place, whichever instances launches become. Commands are
//     held against budgets, what forbids them and what they say they save, and
//     the state after all of them against the same rules.
//   - Addable looks for pending pods that could be added one at a time.
//   - Cheapest and Best find the least price by trying everything.
//   - Deletable names the nodes that can go, by trying every place for their
//     pods.
//   - Next is the situation while a plan is carried out, Apply the one after.
package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// Check returns everything that is wrong with plan as an answer to s under p.
func Check(s *model.Snapshot, p model.Policy, plan *model.Plan) []string {
	c := newChecker(s, p)
	c.placements(plan)
	c.launches(plan)
	c.peers(plan)
	c.sharing(plan)
	c.reservations(plan)
	c.groups(plan)
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
	c.commands(plan)
	slices.Sort(c.wrong)
	return c.wrong
}

type checker struct {
	s        *model.Snapshot
	policy   model.Policy
	seen     map[string]int
	shapes   map[string]*model.Shape
	pending  map[string]*model.Pending // by pod
	stations map[string]station        // of the plan
	wrong    []string

	cautious bool // what only just holds does not
}

func newChecker(s *model.Snapshot, p model.Policy) *checker {
	s = asServed(s)
	c := &checker{s: s, policy: p, seen: map[string]int{}, shapes: map[string]*model.Shape{}, pending: map[string]*model.Pending{}}
	for i := range s.Pending {
		for _, pod := range s.Pending[i].Pods {
			c.shapes[pod.Key()], c.pending[pod.Key()] = s.Pending[i].Shape, &s.Pending[i]
		}
	}
	return c
}

func (c *checker) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (c *checker) placements(plan *model.Plan) {
	c.stations = c.stationsOf(plan)
	used := map[string]model.Resources{}
	shapes := map[string][]*model.Shape{}
	for _, p := range plan.Placements {
		c.seen[p.Pod.Key()]++
		used[p.Node] = used[p.Node].Plus(c.shapes[p.Pod.Key()].Requests)
		shapes[p.Node] = append(shapes[p.Node], c.shapes[p.Pod.Key()])
		i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == p.Node })
		if i < 0 {
			c.fail("pod %s is placed on node %s, which does not exist", p.Pod.Key(), p.Node)
			continue
		}
		n := &c.s.Nodes[i]
		if n.Deleting || n.Closed {
			c.fail("pod %s is placed on node %s, which is going away", p.Pod.Key(), p.Node)
		}
		if !accepts(n.Labels, n.Taints, c.shapes[p.Pod.Key()]) {
			c.fail("node %s does not accept pod %s", p.Node, p.Pod.Key())
		}
	}
	for name, sum := range used {
		i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == name })
		if i < 0 {
			continue
		}
		if n := &c.s.Nodes[i]; !n.Requested.Minus(n.Leaving).Max(nil).Plus(sum).Fits(n.Allocatable) {
			c.fail("node %s is overfull", name)
		}
		if clash(c.s.Nodes[i].HostPorts, shapes[name]) {
			c.fail("pods on node %s want the same host port", name)
		}
		if overAttached(&c.s.Nodes[i], shapes[name]) {
			c.fail("node %s attaches more volumes than it can", name)
		}
		if missing := c.lacking(name, c.stations[name], c.stations); len(missing) > 0 {
			c.fail("node %s has no devices for %v", name, missing)
		}
	}
}

// accepts reports whether a node whose labels and taints are settled takes
// pods of the shape.
func accepts(labels model.Requirements, taints []model.Taint, shape *model.Shape) bool {
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
		c.minValues(i, pool, l)
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

// outcome is an instance a launch may become.
type outcome struct {
	kind   *model.InstanceType
	offer  *model.Offering
	labels model.Requirements
}

// outcomes returns every instance the launch may become, whether it can be had
// at the moment or not.
func outcomes(pool *model.Pool, l *model.Launch) []outcome {
	var out []outcome
	for _, t := range pool.Types {
		if !slices.Contains(l.Types, t.Name) {
			continue
		}
		for j := range t.Offerings {
			o := &t.Offerings[j]
			_, ok := o.Requirements.Intersects(l.Requirements)
			held := len(l.ReservationIDs) == 0 || slices.Contains(l.ReservationIDs, o.ReservationID)
			if ok && held && slices.Contains(l.CapacityTypes, o.CapacityType) {
				out = append(out, outcome{t, o, l.Requirements.And(t.Requirements...).And(o.Requirements...)})
			}
		}
	}
	return out
}

// eachOutcome checks that the launch's pods run on whatever instance it becomes.
func (c *checker) eachOutcome(i int, pool *model.Pool, l *model.Launch) {
	cheapest := model.Price(-1)
	var bought []string
	for _, o := range outcomes(pool, l) {
		if !o.offer.Available {
			continue
		}
		bought = append(bought, o.kind.Name)
		if cheapest < 0 || o.offer.Price < cheapest {
			cheapest = o.offer.Price
		}
		c.outcome(i, pool, l, o)
	}
	for _, t := range l.Types {
		if !slices.Contains(bought, t) {
			c.fail("launch %d lists %s, which has no offering for it", i, t)
		}
	}
	if cheapest != l.Price {
		c.fail("launch %d is priced %d, its cheapest offering costs %d", i, l.Price, cheapest)
	}
}

func (c *checker) outcome(i int, pool *model.Pool, l *model.Launch, o outcome) {
	var sum model.Resources
	var shapes []*model.Shape
	var ports []model.HostPort
	for _, p := range l.Pods {
		shape := c.shapes[p.Key()]
		sum = sum.Plus(shape.Requests)
		shapes = append(shapes, shape)
		if !accepts(o.labels, pool.Taints, shape) {
			c.fail("launch %d as %s in %s does not accept pod %s", i, o.kind.Name, o.offer.Zone, p.Key())
		}
	}
	for _, d := range c.s.Daemons {
		if accepts(o.labels, pool.Taints, d.Shape) {
			sum = sum.Plus(d.Shape.Requests)
			ports = append(ports, d.Shape.HostPorts...)
		}
	}
	if !sum.Fits(o.kind.Allocatable) {
		c.fail("launch %d as %s is overfull", i, o.kind.Name)
	}
	c.requested(i, l, o.kind)
	for _, limit := range o.kind.VolumeLimits {
		if n := c.attaches(l, limit.Driver); n > limit.Most {
			c.fail("launch %d as %s attaches %d volumes of %s, %d are allowed", i, o.kind.Name, n, limit.Driver, limit.Most)
		}
	}
	if missing := c.lacking(launchKey(i), newStation(pool, l, o), c.stations); len(missing) > 0 {
		c.fail("launch %d as %s has no devices for %v", i, o.kind.Name, missing)
	}
	if clash(ports, shapes) {
		c.fail("pods on launch %d as %s want the same host port", i, o.kind.Name)
	}
}
