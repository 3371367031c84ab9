// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/model"
)

// rule is an overlay ready for use.
type rule struct {
	name         string
	weight       int32
	requirements model.Requirements
	price        *adjustment         // nil = leaves prices alone
	capacity     corev1.ResourceList // may be empty
}

// newRule returns the overlay as a rule, or everything that is wrong with it.
func newRule(o *v1alpha1.NodeOverlay, labels v1.Labels) (rule, error) {
	price, err := parseAdjustment(&o.Spec)
	errs := v1.ValidationErrors{v1alpha1.ValidateNodeOverlay(o, labels), err}
	return rule{
		name: o.Name, weight: o.WeightValue(), requirements: requirements(o, labels),
		price: price, capacity: o.Spec.Capacity.DeepCopy(),
	}, errs.Join()
}

func requirements(o *v1alpha1.NodeOverlay, labels v1.Labels) model.Requirements {
	var out model.Requirements
	for _, r := range o.Spec.Requirements {
		values := make([]string, len(r.Values))
		for i, v := range r.Values {
			_, values[i] = labels.Canonical(r.Key, v)
		}
		out = out.And(model.NewRequirement(labels.CanonicalKey(r.Key), model.Operator(r.Operator), values...))
	}
	return out
}

// poolLabels returns what overlays can ask of the pool itself: its name and
// the labels of its template.
func poolLabels(pool *v1.NodePool, labels v1.Labels) model.Requirements {
	out := model.LabelRequirements(map[string]string{v1.NodePoolLabelKey: pool.Name})
	for k, v := range pool.Spec.Template.Labels {
		k, v = labels.Canonical(k, v)
		out = out.And(model.NewRequirement(k, model.In, v))
	}
	return out
}

// touches returns the positions of the offerings the rule touches, of a type
// with the requirements described: its own and those of its pool. None means
// that the rule does not concern the type.
func (r *rule) touches(described model.Requirements, offerings []cloud.Offering) []int {
	if _, ok := described.Compatible(r.requirements, nil); !ok {
		return nil
	}
	var out []int
	for i := range offerings {
		// Labels that offerings do not define are the type's, and agreed above.
		if _, ok := offerings[i].Requirements.Intersects(r.requirements); ok {
			out = append(out, i)
		}
	}
	return out
}
