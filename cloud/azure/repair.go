// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud"
)

// Conditions that AKS reports on nodes.
const (
	nodeHealthy         corev1.NodeConditionType = "kubernetes.azure.com/NodeHealthy"
	preemptionScheduled corev1.NodeConditionType = "PreemptionScheduled" // spot is about to be evicted
)

// RepairPolicies implements cloud.Provider. The one of nodeHealthy is the fallback,
// which only its own condition needs.
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	const usual = 10 * time.Minute
	return []cloud.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, ReasonRegex: ".*", Toleration: usual, Action: cloud.ReplaceNode},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, ReasonRegex: ".*", Toleration: usual, Action: cloud.ReplaceNode},
		{ConditionType: nodeHealthy, ConditionStatus: corev1.ConditionFalse, Action: cloud.ReplaceNode},
		{ConditionType: preemptionScheduled, ConditionStatus: corev1.ConditionTrue, ReasonRegex: ".*", Action: cloud.ReplaceNode},
	}
}
