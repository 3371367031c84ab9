// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
)

// ValidateNodeOverlay returns everything that is wrong with the overlay beyond
// the checks of the CRD schema, as v1.ValidationErrors, or nil.
func ValidateNodeOverlay(overlay *NodeOverlay, labels v1.Labels) error {
	errs := v1.ValidationErrors{unreadable.Error(overlay)}
	for i, requirement := range overlay.Spec.Requirements {
		where := fmt.Sprintf("spec.requirements[%d]", i)
		if err := v1.ValidateRequirement(requirement.WithMinValues(), labels); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
		if requirement.Operator == corev1.NodeSelectorOpNotIn && len(requirement.Values) == 0 {
			errs = append(errs, fmt.Errorf("%s: key %q: operator NotIn needs at least one value", where, requirement.Key))
		}
	}
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
	} {
		if _, ok := overlay.Spec.Capacity[name]; ok {
			errs = append(errs, fmt.Errorf("spec.capacity[%s]: only extended resources may be overlaid; remove it", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overlay.Spec.Capacity)) {
		if q := overlay.Spec.Capacity[name]; q.Sign() < 0 {
			errs = append(errs, fmt.Errorf("spec.capacity[%s]: %s is negative", name, q.String()))
		}
	}
	return errs.Join()
}

// WithMinValues returns the requirement in the form NodePools use.
func (r NodeSelectorRequirement) WithMinValues() v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: r.Values}
}
