// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// mostCharged is how much a charge remembers before it starts again.
const mostCharged = 20_000

// charge turns limits on attached volumes that instance types have into a
// resource: volumes of a driver, which pods request and types have. Nodes have no
// end of it, since Node.Attached says exactly what they can take.
//
// A claim that pods share counts once: with the first of the pods that need a
// place, and not with the others, unless no type could attach all that one of them
// uses. If only some can, another resource keeps the pods off the nodes of the
// rest: those that can have no end of it, the others none. The pods are not kept off new nodes that pods
// without the claim have filled; once such a node is on its way, Attached tells.
//
// What stays the same in a Snapshot stays the same here, so that what was
// compiled of it remains good. The zero value has nothing charged.
type charge struct {
	axes []axis // sorted; position base+i on the axis of the Snapshot
	base int

	types  map[*model.InstanceType]*model.InstanceType
	lists  map[**model.InstanceType][]*model.InstanceType // by the first of a list
	shapes map[shapeUse]*model.Shape
	plain  map[*model.Shape]*model.Shape // as they were, by what they became
	room   map[*int64]model.Resources    // of nodes, by the first of what they had
}

// axis is volumes of a driver as a resource: so many that one pod attaches, or all
// that pods attach.
type axis struct {
	driver string
	atOnce int // 0 = all
	most   int // that some type attaches
}

func (a axis) String() string {
	if a.atOnce == 0 {
		return "volumes of " + a.driver
	}
	return fmt.Sprintf("space to attach %d volumes of %s at once", a.atOnce, a.driver)
}

// have returns how much of it a node has that attaches so many volumes at most.
func (a axis) have(most int) int64 {
	switch {
	case a.atOnce == 0:
		return int64(most)
	case a.atOnce <= most:
		return fit.Endless
	}
	return 0
}

// shapeUse is a shape, by whether its shared claims are counted.
type shapeUse struct {
	*model.Shape
	shared bool
}

// of returns the Snapshot with volumes as a resource; s itself if no type limits
// them.
func (c *charge) of(s *model.Snapshot) *model.Snapshot {
	axes := axesOf(s)
	if len(axes) == 0 {
		*c = charge{}
		return s
	}
	if !slices.Equal(axes, c.axes) || c.base != len(s.Resources) || len(c.shapes)+len(c.room)+len(c.types) > mostCharged {
		*c = charge{
			axes: axes, base: len(s.Resources),
			types: map[*model.InstanceType]*model.InstanceType{}, lists: map[**model.InstanceType][]*model.InstanceType{},
			shapes: map[shapeUse]*model.Shape{}, plain: map[*model.Shape]*model.Shape{}, room: map[*int64]model.Resources{},
		}
	}
	out := *s
	out.Resources = slices.Clone(s.Resources)
	for _, a := range axes {
		out.Resources = append(out.Resources, a.String())
	}
	out.Pools = slices.Clone(s.Pools)
	for i := range out.Pools {
		out.Pools[i].Types = c.list(out.Pools[i].Types)
	}
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Allocatable = c.endless(n.Allocatable)
		n.Movable = c.pending(n.Movable)
	}
	out.Pending = c.pending(s.Pending)
	return &out
}

// axesOf returns the drivers whose volumes some type limits, and how many of them
// pods with shared claims attach at once where some types can and some cannot,
// sorted.
func axesOf(s *model.Snapshot) []axis {
	least, most := limits(s)
	var out []axis
	for driver := range least {
		out = append(out, axis{driver: driver, most: most[driver]})
	}
	add := func(all []model.Pending) {
		for i := range all {
			for _, v := range all[i].Shape.Volumes {
				if n, ok := least[v.Driver]; ok && len(v.Shared) > 0 && n < atOnce(v) && atOnce(v) <= most[v.Driver] {
					out = append(out, axis{v.Driver, atOnce(v), most[v.Driver]})
				}
			}
		}
	}
	if len(out) > 0 {
		add(s.Pending)
		for i := range s.Nodes {
			add(s.Nodes[i].Movable)
		}
	}
	slices.SortFunc(out, func(a, b axis) int { return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.atOnce, b.atOnce)) })
	return slices.Compact(out)
}

// limits returns the least and the most volumes that types attach, by the drivers
// that some of them limit.
func limits(s *model.Snapshot) (least, most map[string]int) {
	least, most = map[string]int{}, map[string]int{}
	types, limiting := 0, map[string]int{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			types++
			for _, l := range t.VolumeLimits {
				n, known := least[l.Driver]
				if !known || l.Most < n {
					least[l.Driver] = l.Most
				}
				most[l.Driver] = max(most[l.Driver], l.Most)
				limiting[l.Driver]++
			}
		}
	}
	for driver, n := range limiting {
		if n < types {
			most[driver] = fit.Endless
		}
	}
	return least, most
}

// atOnce is how many volumes one pod attaches.
func atOnce(v model.Volumes) int { return v.Own + len(v.Shared) }

func (c *charge) list(types []*model.InstanceType) []*model.InstanceType {
	if len(types) == 0 {
		return types
	}
	if known := c.lists[&types[0]]; len(known) == len(types) {
		return known
	}
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		if c.types[t] == nil {
			limits := *t
			limits.Allocatable = c.endless(t.Allocatable)
			for j, a := range c.axes {
				if most, ok := limitOf(t, a.driver); ok {
					limits.Allocatable = limits.Allocatable.With(c.base+j, a.have(most))
				}
			}
			c.types[t] = &limits
		}
		out[i] = c.types[t]
	}
	c.lists[&types[0]] = out
	return out
}

func limitOf(t *model.InstanceType, driver string) (int, bool) {
	for _, l := range t.VolumeLimits {
		if l.Driver == driver {
			return l.Most, true
		}
	}
	return 0, false
}

// endless returns what there is with no end of volumes.
func (c *charge) endless(have model.Resources) model.Resources {
	if len(have) == 0 {
		return have
	}
	out := c.room[&have[0]]
	if out == nil {
		out = make(model.Resources, c.base+len(c.axes))
		copy(out, have)
		for j := range c.axes {
			out[c.base+j] = fit.Endless
		}
		c.room[&have[0]] = out
	}
	return out
}

// pending returns the pods with what they attach as requests. A claim that pods
// share is charged to one of them, whatever the order they come in.
func (c *charge) pending(all []model.Pending) []model.Pending {
	out := make([]model.Pending, 0, len(all))
	pays := c.payers(all)
	for i, p := range all {
		if !pays[i] {
			p.Shape = c.shape(p.Shape, false)
			out = append(out, p)
			continue
		}
		one, rest := p, p
		one.Pods, one.Shape = p.Pods[:1], c.shape(p.Shape, true)
		rest.Pods, rest.Shape = p.Pods[1:], c.shape(p.Shape, false)
		if slices.Equal(rest.Shape.Requests, one.Shape.Requests) {
			one, rest.Pods = p, nil
			one.Shape = c.shape(p.Shape, false)
		}
		out = append(out, one)
		if len(rest.Pods) > 0 {
			out = append(out, rest)
		}
	}
	return out
}

// payers returns by entry whether a pod of it is charged with the claims that its
// pods share: the entry is the first, by its pods, that has one of them.
func (c *charge) payers(all []model.Pending) []bool {
	order := make([]int, 0, len(all))
	for i := range all {
		if len(all[i].Pods) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].Shape.Key, all[b].Shape.Key), cmp.Compare(all[a].Pods[0].Key(), all[b].Pods[0].Key()))
	})
	out, counted := make([]bool, len(all)), map[string]bool{}
	for _, i := range order {
		for _, claim := range c.shared(all[i].Shape) {
			out[i] = out[i] || !counted[claim]
			counted[claim] = true
		}
	}
	return out
}

// shared returns the claims of limited drivers that the shape shares with others.
func (c *charge) shared(s *model.Shape) []string {
	var out []string
	for _, v := range s.Volumes {
		if slices.ContainsFunc(c.axes, func(a axis) bool { return a.driver == v.Driver }) {
			out = append(out, v.Shared...)
		}
	}
	return out
}

// shape returns the shape with what it attaches as requests.
func (c *charge) shape(s *model.Shape, shared bool) *model.Shape {
	use := shapeUse{s, shared}
	if known := c.shapes[use]; known != nil {
		return known
	}
	var more model.Resources
	for _, v := range s.Volumes {
		for j, a := range c.axes {
			n := v.Own
			if shared || a.most < atOnce(v) {
				n = atOnce(v)
			}
			switch {
			case a.driver != v.Driver:
			case a.atOnce == 0 && n > 0:
				more = more.With(c.base+j, int64(n))
			case a.atOnce == atOnce(v) && len(v.Shared) > 0:
				more = more.With(c.base+j, 1)
			}
		}
	}
	out := s
	if len(more) > 0 {
		copied := *s
		out, copied.Requests = &copied, s.Requests.Plus(more)
		if shared {
			out.Key += " counting shared volumes"
		}
		c.plain[out] = s
	}
	c.shapes[use] = out
	return out
}

// undo has the plan speak of resources and shapes as the Snapshot does.
func (c *charge) undo(plan *model.Plan) {
	if len(c.axes) > 0 {
		plan.Restore(c.base, c.plain)
	}
}
