// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"container/heap"
	"iter"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// hugepages is the prefix of resources that are carved out of memory.
const hugepages = "hugepages-"

// Total returns the sum of the three parts of the overhead.
func (o Overhead) Total() corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, part := range []corev1.ResourceList{o.KubeReserved, o.SystemReserved, o.EvictionThreshold} {
		for name, q := range part {
			sum := total[name]
			sum.Add(q)
			total[name] = sum
		}
	}
	return total
}

// Allocatable returns what pods can use of a node of the type: its capacity
// less its overhead, less the huge pages in the case of memory, and never less
// than nothing. The result is the caller's.
func (t *InstanceType) Allocatable() corev1.ResourceList {
	return allocatable(t.Capacity, t.Overhead.Total())
}

func allocatable(capacity, overhead corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(capacity))
	for name, q := range capacity {
		q = q.DeepCopy()
		q.Sub(overhead[name])
		out[name] = q
	}
	if memory, ok := out[corev1.ResourceMemory]; ok {
		for name, q := range capacity {
			if strings.HasPrefix(string(name), hugepages) {
				memory.Sub(q)
			}
		}
		out[corev1.ResourceMemory] = memory
	}
	for name, q := range out {
		if q.Sign() < 0 {
			out[name] = *resource.NewQuantity(0, q.Format)
		}
	}
	return out
}

// Group is the available offerings of a type that come with the same
// resources.
type Group struct {
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	Offerings   []Offering
}

// Groups returns the type's available offerings by the resources they come
// with. The first group is the type's own resources, even when no offering
// comes with them; the others follow in order of first appearance.
func (t *InstanceType) Groups() []Group {
	groups := []Group{{Capacity: t.Capacity, Allocatable: t.Allocatable()}}
	overheads := []corev1.ResourceList{t.Overhead.Total()}
	for _, o := range t.Offerings {
		if !o.Available {
			continue
		}
		capacity, overhead := merge(t.Capacity, o.CapacityOverride), merge(overheads[0], o.OverheadOverride)
		i := 0
		for i < len(groups) && !(equal(groups[i].Capacity, capacity) && equal(overheads[i], overhead)) {
			i++
		}
		if i == len(groups) {
			groups = append(groups, Group{Capacity: capacity, Allocatable: allocatable(capacity, overhead)})
			overheads = append(overheads, overhead)
		}
		groups[i].Offerings = append(groups[i].Offerings, o)
	}
	return groups
}

// merge returns base with the entries of over replaced or added.
func merge(base, over corev1.ResourceList) corev1.ResourceList {
	if len(over) == 0 {
		return base
	}
	out := base.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, q := range over {
		out[name] = q.DeepCopy()
	}
	return out
}

func equal(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// Holds reports whether requests fit into resources. A request of zero fits
// even if the resource is absent.
func Holds(resources, requests corev1.ResourceList) bool {
	for name, want := range requests {
		if have, ok := resources[name]; want.Sign() > 0 && (!ok || have.Cmp(want) < 0) {
			return false
		}
	}
	return true
}

// Zone returns the offering's zone.
func (o *Offering) Zone() string { v, _ := o.Requirements.Value(model.LabelZone); return v }

// CapacityType returns the capacity type of the offering.
func (o *Offering) CapacityType() string {
	v, _ := o.Requirements.Value(model.LabelCapacityType)
	return v
}

// Choice is an offering of a type, picked for a launch.
type Choice struct {
	Type     *InstanceType
	Offering *Offering
}

// Capacity returns what a machine launched from the choice has.
func (c Choice) Capacity() corev1.ResourceList {
	return merge(c.Type.Capacity, c.Offering.CapacityOverride)
}

// Allocatable returns what pods can use of it.
func (c Choice) Allocatable() corev1.ResourceList {
	return allocatable(c.Capacity(), merge(c.Type.Overhead.Total(), c.Offering.OverheadOverride))
}

// Labels returns the labels of a machine launched for the claim from the
// choice: the claim's labels, then every label that its requirements, the type
// or the offering pin to one value, in this order. The map is the caller's.
func (c Choice) Labels(claim *v1.NodeClaim) map[string]string {
	labels := maps.Clone(claim.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, rs := range []model.Requirements{Demand(claim), c.Type.Requirements, c.Offering.Requirements} {
		for _, r := range rs {
			if value, ok := rs.Value(r.Key); ok {
				labels[r.Key] = value
			}
		}
	}
	return labels
}

// Choices iterates over all ways to launch what a claim demands, cheapest
// first: the available offerings that agree with the requirements and hold the
// requests. Equal prices are ordered by type, zone and capacity type, so that
// the same input always gives the same answer.
func Choices(types []*InstanceType, demand model.Requirements, requests corev1.ResourceList) iter.Seq[Choice] {
	return func(yield func(Choice) bool) {
		left := compatible(types, demand)
		heap.Init(&left)
		for len(left) > 0 {
			c := left[0]
			if Holds(c.Allocatable(), requests) && !yield(c) {
				return
			}
			heap.Pop(&left)
		}
	}
}

func compatible(types []*InstanceType, demand model.Requirements) choices {
	var out choices
	for _, t := range types {
		if _, ok := t.Requirements.Intersects(demand); !ok {
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if !o.Available {
				continue
			}
			if _, ok := o.Requirements.Intersects(demand); ok {
				out = append(out, Choice{Type: t, Offering: o})
			}
		}
	}
	return out
}

// choices is a heap.Interface with the best choice first. Most callers take
// the first or the second one, so sorting all would be waste.
type choices []Choice

func (c choices) Len() int      { return len(c) }
func (c choices) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

func (c choices) Less(i, j int) bool {
	a, b := &c[i], &c[j]
	if a.Offering.Price != b.Offering.Price {
		return a.Offering.Price < b.Offering.Price
	}
	if a.Type != b.Type {
		return a.Type.Name < b.Type.Name
	}
	return compareOfferings(a.Offering, b.Offering) < 0
}

// Push is not used: a heap of choices only shrinks.
func (c *choices) Push(x any) { *c = append(*c, x.(Choice)) }

// Pop removes the last element for package heap.
func (c *choices) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// compareOfferings orders the offerings of one type by zone and capacity type;
// provider-specific requirements break ties.
func compareOfferings(a, b *Offering) int {
	if c := strings.Compare(a.Zone(), b.Zone()); c != 0 {
		return c
	}
	if c := strings.Compare(a.CapacityType(), b.CapacityType()); c != 0 {
		return c
	}
	return strings.Compare(a.Requirements.String(), b.Requirements.String())
}
