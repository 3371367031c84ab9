// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// config is the configuration that is in effect in a run.
type config struct {
	changed   map[string]*v1.NodePool // by name: in place of what was recorded
	pools     map[string]*v1.NodePool
	like      map[string]string // by NodePool: the one whose instance types it has
	catalogue int               // position of the one in force
	buffers   map[string]bool   // CapacityBuffers that pods stand in for
}

// resemble finds the recorded NodePool whose instance types the changed one has: that of the
// same name or else another one, if it has the same node class.
func (r *run) resemble(p *v1.NodePool) error {
	same := func(name string) bool {
		old := r.h.pools[name]
		return old != nil && *old.Spec.Template.Spec.NodeClassRef == *p.Spec.Template.Spec.NodeClassRef
	}
	names := []string{p.Name}
	for _, published := range r.h.catalogues[0].published.Offerings.Snapshot.Pools {
		names = append(names, published.Name)
	}
	i := slices.IndexFunc(names, same)
	if i < 0 {
		ref := p.Spec.Template.Spec.NodeClassRef
		return fmt.Errorf("NodePool %s: the instance types of %s %s are not known, because no NodePool in the recording has it. Use a node class of the recording", p.Name, ref.Kind, ref.Name)
	}
	r.config.like[p.Name] = names[i]
	return nil
}

// set applies a setting.
func (r *run) set(s *setting) {
	r.disrupter.stirred = true
	r.open()
	switch o := s.object.(type) {
	case *v1.NodePool:
		switch {
		case r.config.changed[o.Name] != nil && s.deleted:
		case r.config.changed[o.Name] != nil: // it is there, and ready, from when on the recorded one was
			p := r.config.changed[o.Name].DeepCopy()
			p.Status = o.Status
			r.setPool(p)
		case s.deleted:
			delete(r.config.pools, o.Name)
			r.sink.Delete(o)
			for _, n := range slices.Clone(r.fleet.nodes) {
				if n.pool == o.Name {
					r.drain(n, "deleted")
				}
			}
		default:
			r.setPool(o)
		}
	case *policyv1.PodDisruptionBudget:
		r.guard(o, s.deleted)
	default:
		if s.deleted {
			r.sink.Delete(o)
			return
		}
		r.sink.Set(o)
	}
}

// setPool records the present state of a NodePool.
func (r *run) setPool(p *v1.NodePool) {
	old := r.config.pools[p.Name]
	r.config.pools[p.Name] = p
	r.sink.Set(p)
	if old == nil {
		r.types(p.Name)
	}
	if old == nil || old.Generation != p.Generation || conditions.IsTrue(old, v1.ReadyCondition) != conditions.IsTrue(p, v1.ReadyCondition) {
		r.disrupter.drifting, r.provisioner.arrived = true, true
	}
}

// types gives the NodePool the instance types and prices that are in force.
func (r *run) types(pool string) {
	of := cmp.Or(r.config.like[pool], pool)
	s := r.h.catalogues[r.config.catalogue].published.Offerings.Snapshot
	for i := range s.Pools {
		if s.Pools[i].Name == of {
			r.world.SetTypes(pool, onAxis(s.Pools[i].Types, s.Resources, r.world.Axis()), s.Pools[i].Extras...)
		}
	}
}

// offer applies the published offerings.
func (r *run) offer(i int) {
	r.config.catalogue, r.disrupter.stirred, r.provisioner.arrived = i, true, true
	for name := range r.config.pools {
		r.types(name)
	}
	standIns := r.h.catalogues[i].published.StandIns()
	for buffer := range r.config.buffers {
		if len(standIns[buffer]) == 0 {
			r.world.DeleteBuffer(buffer)
			delete(r.config.buffers, buffer)
		}
	}
	for buffer, pods := range standIns {
		r.world.SetBuffer(buffer, pods)
		r.config.buffers[buffer] = true
	}
}

// onAxis returns the types with vectors on the axis, which those of the first catalogue are on.
func onAxis(types []*model.InstanceType, names []string, axis *model.Axis) []*model.InstanceType {
	moves := false
	for i, name := range names {
		moves = axis.Index(name) != i || moves
	}
	if !moves {
		return types
	}
	moved := func(from model.Resources) (to model.Resources) {
		for i, v := range from {
			if v != 0 {
				to = to.With(axis.Index(names[i]), v)
			}
		}
		return to
	}
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		other := *t
		other.Capacity, other.Allocatable = moved(t.Capacity), moved(t.Allocatable)
		out[i] = &other
	}
	return out
}
