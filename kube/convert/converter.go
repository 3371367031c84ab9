// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/kube/devices"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/world"
)

// Converter holds what conversions depend on besides the object. It is a
// value and does not change.
type Converter struct {
	Axis   *model.Axis
	Labels v1.Labels
	// Manages reports whether the provider serves the node class.
	Manages func(*v1.NodeClassReference) bool
	// Overlaid reports whether overlays have changed the price or the capacity
	// of any of the instance types of a pool. Nil means there are none.
	Overlaid func(pool string, types []string) (price, capacity bool)
	// Sick reports whether the Node has a condition that a repair policy is
	// about. Nil means that nodes are not repaired.
	Sick func(*corev1.Node) bool
	// DeletionCosts says that Karpenter writes the deletion costs of pods, so that
	// they say nothing about what it costs to evict them.
	DeletionCosts bool
	// StaticCapacity says that static pools are kept at their number of nodes.
	StaticCapacity bool
	// PodGroupsUnread says that PodGroups of Kubernetes cannot be read, so that pods are
	// members of none.
	PodGroupsUnread bool
	// Coscheduling says that PodGroups of the coscheduling plugin can be read, so that its
	// label makes pods members of one.
	Coscheduling bool
	// Volumes says where persistent volumes let the pod run. The answer changes
	// with the claims, not with the pod. Nil means that pods which use claims
	// are rejected.
	Volumes func(*corev1.Pod) volumes.Answer
	// Devices says what a pod's ResourceClaims mean for it. The answer changes with
	// other objects. Nil means that pods which use some are rejected.
	Devices func(*corev1.Pod) devices.Answer
	// Spread returns the constraints of a pod that has none itself; they change
	// with other objects. Nil means there are none.
	Spread func(*corev1.Pod) []corev1.TopologySpreadConstraint
}

// WellKnown returns the labels a pod may ask for although no pool defines
// them.
func (c Converter) WellKnown() model.LabelSet {
	return model.NewLabelSet(c.Labels.WellKnown.UnsortedList()...)
}

// maxQuantity keeps sums of quantities from overflowing. No machine is larger,
// whatever the resource.
const maxQuantity = 1 << 53

// Resources returns the quantities as a vector. New names are added to the
// axis in alphabetical order.
func (c Converter) Resources(list corev1.ResourceList) model.Resources {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	out := make(model.Resources, model.EphemeralStorage+1)
	for _, name := range names {
		i := c.Axis.Index(name)
		for len(out) <= i {
			out = append(out, 0)
		}
		out[i] = amount(i, list[corev1.ResourceName(name)])
	}
	return out
}

// amount returns the quantity in the unit of its position, rounded up. Negative
// amounts count as 0, so that one object cannot add capacity for another.
func amount(position int, q resource.Quantity) int64 {
	switch {
	case q.CmpInt64(maxQuantity) > 0:
		return maxQuantity
	case q.Sign() < 0:
		return 0
	}
	if position == model.CPU && q.Value() < maxQuantity/1000 {
		return q.MilliValue()
	}
	if position == model.CPU {
		return maxQuantity
	}
	return q.Value()
}

// Requested returns what the pod requests, by name.
func (c Converter) Requested(p *world.Pod) corev1.ResourceList {
	out := c.List(p.Shape.Requests)
	for name, v := range p.Unknown {
		out[corev1.ResourceName(name)] = quantity(model.Nodes+1, v)
	}
	return out
}

// List returns the vector as quantities by name, without zeros.
func (c Converter) List(r model.Resources) corev1.ResourceList {
	names := c.Axis.Names()
	out := corev1.ResourceList{}
	for i, v := range r {
		if v != 0 {
			out[corev1.ResourceName(names[i])] = quantity(i, v)
		}
	}
	return out
}

func quantity(position int, v int64) resource.Quantity {
	switch position {
	case model.CPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case model.Memory, model.EphemeralStorage:
		return *resource.NewQuantity(v, resource.BinarySI)
	}
	return *resource.NewQuantity(v, resource.DecimalSI)
}

// requirement returns "key operator values" with aliases replaced.
func (c Converter) requirement(key string, operator corev1.NodeSelectorOperator, values []string) model.Requirement {
	canonical := make([]string, len(values))
	for i, v := range values {
		_, canonical[i] = c.Labels.Canonical(key, v)
	}
	return model.NewRequirement(c.Labels.CanonicalKey(key), model.Operator(operator), canonical...)
}

// Requirements returns the conjunction of requirements as NodePools and
// NodeClaims write them.
func (c Converter) Requirements(list []v1.NodeSelectorRequirementWithMinValues) model.Requirements {
	var out model.Requirements
	for _, r := range list {
		next := c.requirement(r.Key, r.Operator, r.Values)
		if r.MinValues != nil {
			next.MinValues = *r.MinValues
		}
		out = out.And(next)
	}
	return out
}

func taints(list []corev1.Taint) []model.Taint {
	if len(list) == 0 {
		return nil
	}
	out := make([]model.Taint, len(list))
	for i, t := range list {
		out[i] = model.Taint{Key: t.Key, Value: t.Value, Effect: model.Effect(t.Effect)}
	}
	return out
}
