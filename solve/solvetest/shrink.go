// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"slices"
	"time"

	"karpenter/model"
)

// Shrink takes parts off s as long as it still fails, and returns what is
// left: the situation to look at.
func Shrink(s *model.Snapshot, fails func(*model.Snapshot) bool) *model.Snapshot {
	best := clone(s)
	for shrunk := true; shrunk; {
		shrunk = false
		for i := 0; ; i++ {
			next := clone(best)
			if !cut(next, i) {
				break
			}
			if fails(next) {
				best, shrunk = next, true
				i--
			}
		}
	}
	return best
}

// cut takes off the part with this number; false when there is none.
func cut(s *model.Snapshot, n int) bool {
	c := &cutter{n: n}
	drop(c, &s.Pools)
	drop(c, &s.Nodes)
	drop(c, &s.Daemons)
	drop(c, &s.Pending)
	drop(c, &s.Groups)
	for i := range s.Pending {
		p := &s.Pending[i]
		drop(c, &p.Pods)
		for j := range p.Pods {
			reset(c, &p.Pods[j].Planned)
			reset(c, &p.Pods[j].Group)
		}
		c.shape(p.Shape)
	}
	for i := range s.Nodes {
		drop(c, &s.Nodes[i].Residents)
		drop(c, &s.Nodes[i].Devices)
		drop(c, &s.Nodes[i].Taints)
		drop(c, &s.Nodes[i].HostPorts)
		drop(c, &s.Nodes[i].Attached)
		reset(c, &s.Nodes[i].Stuck)
		reset(c, &s.Nodes[i].Deleting)
		c.disruption(&s.Nodes[i].Disruption)
		reset(c, &s.Nodes[i].Requested)
		drop(c, &s.Nodes[i].Movable)
		for j := range s.Nodes[i].Movable {
			drop(c, &s.Nodes[i].Movable[j].Pods)
			c.shape(s.Nodes[i].Movable[j].Shape)
		}
		s.Nodes[i].Movable = slices.DeleteFunc(s.Nodes[i].Movable, func(p model.Pending) bool { return len(p.Pods) == 0 })
		for j := range s.Nodes[i].Residents {
			drop(c, &s.Nodes[i].Residents[j].Anti)
		}
	}
	for i := range s.Pools {
		drop(c, &s.Pools[i].Requirements)
		drop(c, &s.Pools[i].Taints)
		drop(c, &s.Pools[i].Limits)
		reset(c, &s.Pools[i].Disruption.Allowed)
		reset(c, &s.Pools[i].Disruption.Policy)
		reset(c, &s.Pools[i].Disruption.Never)
		reset(c, &s.Pools[i].Weight)
	}
	c.types(s)
	return c.done
}

// cutter counts down to the part that goes.
type cutter struct {
	n    int
	done bool
}

func (c *cutter) hit() bool {
	if c.n--; c.n == -1 {
		c.done = true
		return true
	}
	return false
}

// drop takes an element off a list.
func drop[S ~[]T, T any](c *cutter, list *S) {
	for i := range *list {
		if c.hit() {
			*list = slices.Delete(slices.Clone(*list), i, i+1)
			return
		}
	}
}

// reset sets a value that is set to nothing.
func reset[T any](c *cutter, v *T) {
	var zero T
	if any(*v) != nil && !isZero(*v) && c.hit() {
		*v = zero
	}
}

func isZero(v any) bool {
	switch x := v.(type) {
	case bool:
		return !x
	case string:
		return x == ""
	case int32:
		return x == 0
	case model.Resources:
		return len(x) == 0
	case map[model.Reason]int:
		return len(x) == 0
	case model.ConsolidationPolicy:
		return x == ""
	case time.Time:
		return x.IsZero()
	}
	return false
}

func (c *cutter) disruption(d *model.NodeDisruption) {
	reset(c, &d.Empty)
	reset(c, &d.Consolidatable)
	reset(c, &d.Settling)
	reset(c, &d.Fresh)
	reset(c, &d.Returned)
	reset(c, &d.PodsEnd)
	reset(c, &d.Since)
	reset(c, &d.Drifted)
	reset(c, &d.Blocked)
	reset(c, &d.Held)
	drop(c, &d.Together)
	reset(c, &d.Deadline)
}

func (c *cutter) shape(s *model.Shape) {
	drop(c, &s.Spread)
	drop(c, &s.PodTerms)
	drop(c, &s.Preferences)
	drop(c, &s.HostPorts)
	drop(c, &s.Volumes)
	drop(c, &s.VolumeTerms)
	drop(c, &s.Selector)
	drop(c, &s.Terms)
	drop(c, &s.Tolerations)
	drop(c, &s.Claims)
}

// types takes off a type, or an offering, wherever it is used.
func (c *cutter) types(s *model.Snapshot) {
	var all []*model.InstanceType
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	for _, t := range all {
		if c.hit() {
			for i := range s.Pools {
				s.Pools[i].Types = slices.DeleteFunc(slices.Clone(s.Pools[i].Types), func(x *model.InstanceType) bool { return x == t })
			}
			return
		}
		drop(c, &t.Offerings)
		drop(c, &t.Devices)
	}
}

// clone copies what Shrink may change.
func clone(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Pools, out.Nodes = slices.Clone(s.Pools), slices.Clone(s.Nodes)
	out.Daemons, out.Pending = slices.Clone(s.Daemons), slices.Clone(s.Pending)
	shapes := map[*model.Shape]*model.Shape{}
	own := func(all []model.Pending) {
		for i := range all {
			p := &all[i]
			if shapes[p.Shape] == nil {
				copied := *p.Shape
				shapes[p.Shape] = &copied
			}
			p.Shape, p.Pods = shapes[p.Shape], slices.Clone(p.Pods)
		}
	}
	own(out.Pending)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Residents, n.Movable = slices.Clone(n.Residents), slices.Clone(n.Movable)
		own(n.Movable)
	}
	types := map[*model.InstanceType]*model.InstanceType{}
	for i := range out.Pools {
		p := &out.Pools[i]
		p.Types = slices.Clone(p.Types)
		for j, t := range p.Types {
			if types[t] == nil {
				copied := *t
				types[t] = &copied
			}
			p.Types[j] = types[t]
		}
	}
	return &out
}
