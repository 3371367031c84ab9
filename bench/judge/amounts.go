// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
)

// amounts are quantities in thousandths of their unit.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, q := range list {
		out[name] = q.MilliValue() // holds 9 PB
	}
	return out
}

func (a amounts) add(b amounts) {
	for name, v := range b {
		a[name] += v
	}
}

func (a amounts) less(b amounts) {
	for name, v := range b {
		a[name] -= v
	}
}

func (a amounts) most(b amounts) {
	for name, v := range b {
		a[name] = max(a[name], v)
	}
}

// fit reports whether a fits into room, or what does not.
func (a amounts) fit(room amounts) (corev1.ResourceName, bool) {
	for name, v := range a {
		if v > room[name] {
			return name, false
		}
	}
	return "", true
}

// reserve adds what a claim may become to what its pool uses.
func (j *Judge) reserve(pool string, largest amounts) {
	if j.used[pool] == nil {
		j.used[pool] = amounts{}
	}
	j.used[pool].add(largest)
}

// limits checks that pools stay within their limits whatever their claims
// become.
func (j *Judge) limits() {
	for name, pool := range j.pools {
		total := amounts{}
		for _, m := range j.nodes {
			if m.Node.Labels[v1.NodePoolLabelKey] == name {
				total.add(amountsOf(m.Node.Status.Capacity))
				total["nodes"] += 1000
			}
		}
		total.add(j.used[name])
		for resource, limit := range amountsOf(corev1.ResourceList(pool.Spec.Limits)) {
			if total[resource] > limit {
				j.fault("pool %s may reach %d of %s, its limit is %d (thousandths)", name, total[resource], resource, limit)
			}
		}
	}
}

// satisfies reports whether the labels of a type's offering meet the pool's
// requirements on keys the labels have.
func satisfies(labels map[string]string, rs []v1.NodeSelectorRequirementWithMinValues) bool {
	for _, r := range rs {
		if !holds(labels, r.Key, r.Operator, r.Values) {
			return false
		}
	}
	return true
}

func meets(labels map[string]string, rs []corev1.NodeSelectorRequirement) bool {
	for _, r := range rs {
		if !holds(labels, r.Key, r.Operator, r.Values) {
			return false
		}
	}
	return true
}

// holds reports whether the labels of an offering agree with a requirement. A
// label that the offering does not have is the claim's to set.
func holds(labels map[string]string, key string, op corev1.NodeSelectorOperator, values []string) bool {
	have, ok := labels[key]
	if !ok {
		return true
	}
	switch op {
	case corev1.NodeSelectorOpIn:
		return slices.Contains(values, have)
	case corev1.NodeSelectorOpNotIn:
		return !slices.Contains(values, have)
	case corev1.NodeSelectorOpExists:
		return true
	case corev1.NodeSelectorOpDoesNotExist:
		return false
	}
	n, err1 := strconv.ParseInt(have, 10, 64)
	bound, err2 := strconv.ParseInt(values[0], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	switch op {
	case corev1.NodeSelectorOpGt:
		return n > bound
	case corev1.NodeSelectorOpLt:
		return n < bound
	case "Gte":
		return n >= bound
	case "Lte":
		return n <= bound
	}
	return false
}
