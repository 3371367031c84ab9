// SPDX-License-Identifier: Apache-2.0

package drift

import (
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// outdated returns the reason if the claim differs from its pool, as far as the
// API objects show, or "".
func outdated(claim *v1.NodeClaim, pool *v1.NodePool, known v1.Labels) string {
	if hashDiffers(claim, pool) {
		return v1.NodePoolDriftedReason
	}
	if _, ok := labelsOf(claim, known).Compatible(demand(pool, known), nil); !ok {
		return v1.RequirementsDriftedReason
	}
	return ""
}

// hashDiffers reports whether claim and pool carry hashes that can be compared
// and are not equal.
func hashDiffers(claim *v1.NodeClaim, pool *v1.NodePool) bool {
	theirs, ours := claim.Annotations, pool.Annotations
	for _, key := range []string{v1.NodePoolHashAnnotationKey, v1.NodePoolHashVersionAnnotationKey} {
		if theirs[key] == "" || ours[key] == "" {
			return false
		}
	}
	return theirs[v1.NodePoolHashVersionAnnotationKey] == ours[v1.NodePoolHashVersionAnnotationKey] &&
		theirs[v1.NodePoolHashAnnotationKey] != ours[v1.NodePoolHashAnnotationKey]
}

// labelsOf returns the claim's labels as requirements that describe its
// instance.
func labelsOf(claim *v1.NodeClaim, known v1.Labels) model.Requirements {
	canonical := make(map[string]string, len(claim.Labels))
	for key, value := range claim.Labels {
		canonicalKey, canonicalValue := known.Canonical(key, value)
		if _, both := claim.Labels[canonicalKey]; !both || canonicalKey == key {
			canonical[canonicalKey] = canonicalValue
		}
	}
	return model.LabelRequirements(canonical)
}

// demand returns the requirements of the pool's template, without those that
// come from its labels.
func demand(pool *v1.NodePool, known v1.Labels) model.Requirements {
	var out model.Requirements
	for _, r := range pool.Spec.Template.Spec.Requirements {
		values := make([]string, len(r.Values))
		for i, v := range r.Values {
			_, values[i] = known.Canonical(r.Key, v)
		}
		out = out.And(model.NewRequirement(known.CanonicalKey(r.Key), model.Operator(r.Operator), values...))
	}
	return out
}
