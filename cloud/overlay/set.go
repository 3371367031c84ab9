// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud"
	"karpenter/model"
)

// Set is the outcome of an evaluation: the overlays that hold, and the pools
// they were evaluated for. It does not change.
type Set struct {
	rules []rule                        // the one that wins first
	pools map[string]model.Requirements // what overlays can ask of each
}

// agrees reports whether both sets change the types of a pool in the same way.
func (s *Set) agrees(other *Set, pool string) bool {
	was, before := s.pools[pool]
	is, after := other.pools[pool]
	return before == after && reflect.DeepEqual(was, is) && reflect.DeepEqual(s.rules, other.rules)
}

// equal reports whether both sets are the same.
func (s *Set) equal(other *Set) bool { return reflect.DeepEqual(s, other) }

// applied is what overlays have changed of an instance type.
type applied struct{ price, capacity bool }

// apply returns the type as overlaid for a pool with the labels: t itself when
// nothing touches it, otherwise a copy that shares what is the same. The first
// rule that touches a price or a resource settles it.
func (s *Set) apply(own model.Requirements, t *cloud.InstanceType) (*cloud.InstanceType, applied) {
	described := t.Requirements.And(own...)
	prices := make([]*adjustment, len(t.Offerings))
	capacity := corev1.ResourceList{}
	var changed applied
	for i := range s.rules {
		r := &s.rules[i]
		touched := r.touches(described, t.Offerings)
		if len(touched) == 0 {
			continue
		}
		for _, offering := range touched {
			if r.price != nil && prices[offering] == nil {
				prices[offering], changed.price = r.price, true
			}
		}
		for name, q := range r.capacity {
			if _, settled := capacity[name]; !settled {
				capacity[name], changed.capacity = q, true
			}
		}
	}
	if changed == (applied{}) {
		return t, changed
	}
	out := *t
	out.Offerings = slices.Clone(t.Offerings)
	for i, price := range prices {
		o := &out.Offerings[i]
		if price != nil {
			o.Price = price.apply(o.Price)
		}
		o.CapacityOverride = replaced(o.CapacityOverride, capacity)
	}
	if changed.capacity {
		out.Capacity = merged(t.Capacity, capacity)
	}
	return &out, changed
}

// merged returns a new list: base with the entries of over replaced or added.
func merged(base, over corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(base)+len(over))
	for _, list := range []corev1.ResourceList{base, over} {
		for name, q := range list {
			out[name] = q.DeepCopy()
		}
	}
	return out
}

// replaced returns list with its entries taken from over where that has them:
// what an overlay says of a resource holds for every offering.
func replaced(list, over corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for name := range list {
		if q, ok := over[name]; ok {
			if out == nil {
				out = merged(list, nil)
			}
			out[name] = q.DeepCopy()
		}
	}
	if out == nil {
		return list
	}
	return out
}
