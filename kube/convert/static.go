// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// templateRequirements returns the requirements of a node of a static pool:
// those of the template, with all instance types and capacity types that it
// allows, and the labels that the node will have.
func (c Converter) templateRequirements(pool *v1.NodePool, labels map[string]string) model.Requirements {
	return c.Requirements(pool.Spec.Template.Spec.Requirements).And(c.selector(labels)...)
}

// replicas returns how many nodes a static pool keeps, nil for other pools.
func replicas(pool *v1.NodePool) *int {
	if pool.Spec.Replicas == nil {
		return nil
	}
	n := int(min(*pool.Spec.Replicas, math.MaxInt32))
	return &n
}

// static returns why a static pool launches nothing for pods, and "static" alone
// when its nodes are kept at their number.
func (c Converter) static(pool *v1.NodePool) string {
	switch {
	case !c.StaticCapacity:
		return "static, and the feature gate StaticCapacity is off"
	case !conditions.IsTrue(pool, v1.ReadyCondition):
		return "static and not ready"
	}
	return "static"
}
