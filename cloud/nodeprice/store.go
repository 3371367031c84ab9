// SPDX-License-Identifier: Apache-2.0

package nodeprice

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud"
	"karpenter/model"
)

// Store adds extras to the instance types of NodePools. The same types and
// extras give the same pointers. The zero value is ready. It is safe for
// concurrent use.
type Store struct {
	mu    sync.Mutex
	pools map[string]*sums
}

// sums is the types of one NodePool as handed out last.
type sums struct {
	extras []model.Extra
	made   map[*cloud.InstanceType]*cloud.InstanceType // by what they were made from
}

// Add returns the types with the extras added to the prices of their offerings.
// Nothing handed in is modified, and what is handed out is shared.
func (s *Store) Add(pool string, types []*cloud.InstanceType, extras []model.Extra) []*cloud.InstanceType {
	if len(extras) == 0 {
		return types
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.pools[pool]
	now := &sums{extras: extras, made: make(map[*cloud.InstanceType]*cloud.InstanceType, len(types))}
	out := make([]*cloud.InstanceType, len(types))
	for i, t := range types {
		if old != nil && slices.Equal(old.extras, extras) {
			out[i] = old.made[t]
		}
		if out[i] == nil {
			out[i] = add(t, extras)
		}
		now.made[t] = out[i]
	}
	if s.pools == nil {
		s.pools = map[string]*sums{}
	}
	s.pools[pool] = now
	return out
}

func add(t *cloud.InstanceType, extras []model.Extra) *cloud.InstanceType {
	out := *t
	out.Offerings = slices.Clone(t.Offerings)
	for i := range out.Offerings {
		o := &out.Offerings[i]
		o.Price = model.NodePrice(o.Price, extra(t, o, extras), o.Available)
	}
	return &out
}

func extra(t *cloud.InstanceType, o *cloud.Offering, extras []model.Extra) model.Price {
	cpu := t.Capacity[corev1.ResourceCPU]
	return model.Extras(extras, cpu.MilliValue(), o.Zone())
}

// Instance returns the price of the instance alone of an offering of a type that
// Add returned.
func Instance(t *cloud.InstanceType, o *cloud.Offering, extras []model.Extra) model.Price {
	return model.InstancePrice(o.Price, extra(t, o, extras))
}

// Reorder reports whether nodes can differ in what the extras add, so that the
// cheapest instance need not be the cheapest node.
func Reorder(extras []model.Extra) bool {
	return slices.ContainsFunc(extras, func(e model.Extra) bool { return e.VCPU || e.Zone != "" })
}
