// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// gpuReady is the condition that the node monitoring agent of EKS reports GPU
// faults with.
const gpuReady corev1.NodeConditionType = "AcceleratedHardwareReady"

// The reasons of gpuReady name Xid errors of NVIDIA's driver, as in
// NvidiaXID79Error: those that a reboot cures, and those that need another
// machine soon.
const (
	curable   = `XID(46|48|54|62|63|95|109|110|136|140|143|155|156|158)([^0-9]|$)`
	incurable = `XID(64|74|79|119|120)([^0-9]|$)`
)

// RepairPolicies implements cloud.Provider.
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	if p.config.LegacyRepair {
		return legacyPolicies()
	}
	const usual, soon = 30 * time.Minute, 10 * time.Minute
	drain, hurry := 10*time.Minute, 5*time.Minute
	cure := cloud.ReplaceNode
	if p.config.RebootForRepair {
		cure = cloud.RebootNode
	}
	out := []cloud.RepairPolicy{
		{ConditionType: gpuReady, ConditionStatus: corev1.ConditionFalse, ReasonRegex: curable, Toleration: soon, TerminationGracePeriod: &hurry, Action: cure},
		{ConditionType: gpuReady, ConditionStatus: corev1.ConditionFalse, ReasonRegex: incurable, Toleration: soon, TerminationGracePeriod: &hurry, Action: cloud.ReplaceNode},
		{ConditionType: gpuReady, ConditionStatus: corev1.ConditionFalse, Toleration: usual, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, ReasonRegex: ".*", Toleration: usual, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode},
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, "StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady"} {
		out = append(out, cloud.RepairPolicy{
			ConditionType: t, ConditionStatus: corev1.ConditionFalse, ReasonRegex: ".*", Toleration: usual, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode,
		})
	}
	return out
}

// Reboot implements cloud.Rebooter. EC2 does not recognise an operation that is
// repeated, so the ID is not passed on.
func (p *Provider) Reboot(ctx context.Context, claim *v1.NodeClaim, _ string) error {
	id, ok := InstanceID(claim.Status.ProviderID)
	if !ok {
		return unknown(claim.Status.ProviderID)
	}
	return p.instances.Reboot(ctx, id)
}

// legacyPolicies are those of versions before 1.15.
func legacyPolicies() []cloud.RepairPolicy {
	const usual = 30 * time.Minute
	return []cloud.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, Toleration: usual},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, Toleration: usual},
		{ConditionType: gpuReady, ConditionStatus: corev1.ConditionFalse, Toleration: 10 * time.Minute},
		{ConditionType: "StorageReady", ConditionStatus: corev1.ConditionFalse, Toleration: usual},
		{ConditionType: "NetworkingReady", ConditionStatus: corev1.ConditionFalse, Toleration: usual},
		{ConditionType: "KernelReady", ConditionStatus: corev1.ConditionFalse, Toleration: usual},
		{ConditionType: "ContainerRuntimeReady", ConditionStatus: corev1.ConditionFalse, Toleration: usual},
	}
}
