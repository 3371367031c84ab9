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
// which only its own condition needs. Drains are bounded: the pods of a kubelet that is
// gone never end.
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	const usual = 10 * time.Minute
	drain, hurry := 5*time.Minute, 30*time.Second
	return []cloud.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, ReasonRegex: ".*", Toleration: usual, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, ReasonRegex: ".*", Toleration: usual, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode},
		{ConditionType: nodeHealthy, ConditionStatus: corev1.ConditionFalse, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode},
		{ConditionType: preemptionScheduled, ConditionStatus: corev1.ConditionTrue, ReasonRegex: ".*", TerminationGracePeriod: &hurry, Action: cloud.ReplaceNode},
	}
}
