package cloud

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// Converter turns a provider's types into what decisions are made of. It
// remembers its answers: as providers do not modify types they have handed
// out, the same *InstanceType always becomes the same *model.InstanceType, for
// every pool that is offered it. Safe for concurrent use.
type Converter struct {
	axis *model.Axis

	mu    sync.Mutex
	pools map[string][]*InstanceType // as last handed in
	done  map[*InstanceType]*model.InstanceType
}

// NewConverter returns a converter that puts quantities on the axis.
func NewConverter(axis *model.Axis) *Converter {
	return &Converter{axis: axis, pools: map[string][]*InstanceType{}, done: map[*InstanceType]*model.InstanceType{}}
}

// Types returns the types of a pool, in the order given, with their offerings
// by zone and capacity type. An offering with resources of its own has no place
// in the model yet: it is passed on as unavailable, so that it prices nodes but
// is not planned.
func (c *Converter) Types(pool string, types []*InstanceType) []*model.InstanceType {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := !slices.Equal(c.pools[pool], types)
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		if c.done[t] == nil {
			c.done[t] = convert(c.axis, t)
		}
		out[i] = c.done[t]
	}
	if changed {
		c.pools[pool] = slices.Clone(types)
		c.forgetLocked()
	}
	return out
}

// Forget drops what is remembered for a pool that has gone.
func (c *Converter) Forget(pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, pool)
	c.forgetLocked()
}

// forgetLocked drops the types that no pool is offered any more.
func (c *Converter) forgetLocked() {
	kept := make(map[*InstanceType]*model.InstanceType, len(c.done))
	for _, types := range c.pools {
		for _, t := range types {
			kept[t] = c.done[t]
		}
	}
	c.done = kept
}

func convert(axis *model.Axis, t *InstanceType) *model.InstanceType {
	return &model.InstanceType{
		Name:         t.Name,
		Requirements: t.Requirements,
		Capacity:     vector(axis, t.Capacity).With(model.Nodes, 1),
		Allocatable:  vector(axis, t.Allocatable()),
		Offerings:    offerings(t.Offerings),
	}
}

func offerings(in []Offering) []model.Offering {
	sorted := slices.Clone(in)
	slices.SortStableFunc(sorted, func(a, b Offering) int { return compareOfferings(&a, &b) })
	out := make([]model.Offering, len(sorted))
	for i, o := range sorted {
		out[i] = model.Offering{
			Zone:            o.Zone(),
			CapacityType:    o.CapacityType(),
			ReservationID:   o.ReservationID,
			ReservationLeft: o.ReservationCapacity,
			Requirements:    o.Requirements,
			Price:           o.Price,
			Available:       o.Available && o.CapacityOverride == nil && o.OverheadOverride == nil,
		}
	}
	return out
}

// vector returns list on the axis. Names are added to the axis in
// alphabetical order, so that equal lists number it equally.
func vector(axis *model.Axis, list corev1.ResourceList) model.Resources {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	out := make(model.Resources, model.Nodes+1)
	for _, name := range names {
		q, i := list[corev1.ResourceName(name)], axis.Index(name)
		v := q.Value()
		if i == model.CPU {
			v = q.MilliValue()
		}
		out = out.With(i, v)
	}
	return out
}
