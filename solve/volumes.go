package solve

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// unlimited is how many volumes of a driver nodes attach that have no limit for
// it, or that look after their limit themselves.
const unlimited = 1 << 30

// mostCharged is how much a charge remembers before it starts again.
const mostCharged = 20_000

// charge turns limits on attached volumes that instance types have into a
// resource: volumes of a driver, which pods request and types have. Nodes have no
// end of it, since Node.Attached says exactly what they can take.
//
// A claim that pods share counts once: with the first of the pods that need a
// place, and not with the others, unless some type could not attach all that one of
// them uses. The others are not kept off new nodes that pods without the claim have
// filled; once such a node is on its way, Attached tells.
//
// What stays the same in a Snapshot stays the same here, so that what was
// compiled of it remains good. The zero value has nothing charged.
type charge struct {
	drivers []string // sorted; position base+i on the axis
	base    int

	types  map[*model.InstanceType]*model.InstanceType
	lists  map[**model.InstanceType][]*model.InstanceType // by the first of a list
	shapes map[shapeUse]*model.Shape
	plain  map[*model.Shape]*model.Shape // as they were, by what they became
	room   map[*int64]model.Resources    // of nodes, by the first of what they had
}

// shapeUse is a shape, by whether its shared claims are counted.
type shapeUse struct {
	*model.Shape
	shared bool
}

// of returns the Snapshot with volumes as a resource; s itself if no type limits
// them.
func (c *charge) of(s *model.Snapshot) *model.Snapshot {
	drivers := limited(s)
	if len(drivers) == 0 {
		*c = charge{}
		return s
	}
	if !slices.Equal(drivers, c.drivers) || c.base != len(s.Resources) || len(c.shapes)+len(c.room)+len(c.types) > mostCharged {
		*c = charge{
			drivers: drivers, base: len(s.Resources),
			types: map[*model.InstanceType]*model.InstanceType{}, lists: map[**model.InstanceType][]*model.InstanceType{},
			shapes: map[shapeUse]*model.Shape{}, plain: map[*model.Shape]*model.Shape{}, room: map[*int64]model.Resources{},
		}
	}
	out := *s
	out.Resources = slices.Clone(s.Resources)
	for _, d := range drivers {
		out.Resources = append(out.Resources, "volumes of "+d)
	}
	out.Pools = slices.Clone(s.Pools)
	for i := range out.Pools {
		out.Pools[i].Types = c.list(out.Pools[i].Types)
	}
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Allocatable = c.endless(n.Allocatable)
		n.Movable = c.pending(n.Movable, s)
	}
	out.Pending = c.pending(s.Pending, s)
	return &out
}

// limited returns the drivers whose volumes some type limits, sorted.
func limited(s *model.Snapshot) []string {
	var out []string
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			for _, l := range t.VolumeLimits {
				if !slices.Contains(out, l.Driver) {
					out = append(out, l.Driver)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

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
			for j, d := range c.drivers {
				if most, ok := limitOf(t, d); ok {
					limits.Allocatable = limits.Allocatable.With(c.base+j, int64(most))
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
		out = make(model.Resources, c.base+len(c.drivers))
		copy(out, have)
		for j := range c.drivers {
			out[c.base+j] = unlimited
		}
		c.room[&have[0]] = out
	}
	return out
}

// pending returns the pods with what they attach as requests. A claim that pods
// share is charged to one of them, whatever the order they come in.
func (c *charge) pending(all []model.Pending, s *model.Snapshot) []model.Pending {
	out := make([]model.Pending, 0, len(all))
	pays := c.payers(all)
	for i, p := range all {
		if !pays[i] {
			p.Shape = c.shape(p.Shape, false, s)
			out = append(out, p)
			continue
		}
		one, rest := p, p
		one.Pods, one.Shape = p.Pods[:1], c.shape(p.Shape, true, s)
		rest.Pods, rest.Shape = p.Pods[1:], c.shape(p.Shape, false, s)
		if rest.Shape == one.Shape {
			one, rest.Pods = p, nil
			one.Shape = rest.Shape
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
		if slices.Contains(c.drivers, v.Driver) {
			out = append(out, v.Shared...)
		}
	}
	return out
}

// shape returns the shape with what it attaches as requests.
func (c *charge) shape(s *model.Shape, shared bool, of *model.Snapshot) *model.Shape {
	shared = shared || tooMany(of, s)
	use := shapeUse{s, shared}
	if known := c.shapes[use]; known != nil {
		return known
	}
	out := s
	for _, v := range s.Volumes {
		j, ok := slices.BinarySearch(c.drivers, v.Driver)
		n := v.Own
		if shared {
			n += len(v.Shared)
		}
		if !ok || n == 0 {
			continue
		}
		if out == s {
			copied := *s
			out = &copied
		}
		out.Requests = out.Requests.With(c.base+j, int64(n))
	}
	if out != s {
		if shared {
			out.Key += " counting shared volumes"
		}
		c.plain[out] = s
	}
	c.shapes[use] = out
	return out
}

// tooMany reports whether pods of the shape share claims, and some type cannot
// attach all that one of them uses.
func tooMany(s *model.Snapshot, shape *model.Shape) bool {
	for _, v := range shape.Volumes {
		if len(v.Shared) == 0 {
			continue
		}
		for i := range s.Pools {
			for _, t := range s.Pools[i].Types {
				if most, ok := limitOf(t, v.Driver); ok && most < v.Own+len(v.Shared) {
					return true
				}
			}
		}
	}
	return false
}

// undo has the plan speak of resources and shapes as the Snapshot does.
func (c *charge) undo(plan *model.Plan) {
	if len(c.drivers) == 0 {
		return
	}
	c.truncate(plan.Launches)
	for i := range plan.Commands {
		c.truncate(plan.Commands[i].Launches)
	}
	for i := range plan.Verdicts {
		if s := c.plain[plan.Verdicts[i].Shape]; s != nil {
			plan.Verdicts[i].Shape = s
		}
	}
}

func (c *charge) truncate(launches []model.Launch) {
	for i := range launches {
		if l := &launches[i]; len(l.Requests) > c.base {
			l.Requests = l.Requests[:c.base:c.base]
		}
	}
}
