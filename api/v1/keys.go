// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

// Labels that Karpenter owns.
const (
	// NodePoolLabelKey names the NodePool that owns a NodeClaim or Node.
	NodePoolLabelKey = Group + "/nodepool"
	// CapacityTypeLabelKey is the capacity type of the instance: one of the
	// CapacityType constants.
	CapacityTypeLabelKey = Group + "/capacity-type"
	// NodeRegisteredLabelKey is "true" on a Node once it is registered.
	NodeRegisteredLabelKey = Group + "/registered"
	// NodeInitializedLabelKey is "true" on a Node once it is initialized.
	NodeInitializedLabelKey = Group + "/initialized"
	// NodeDoNotSyncTaintsLabelKey, when "true" on a Node at registration,
	// keeps the NodeClaim's taints from being copied to it.
	NodeDoNotSyncTaintsLabelKey = Group + "/do-not-sync-taints"
)

// Values of CapacityTypeLabelKey.
const (
	CapacityTypeSpot     = "spot"
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeReserved = "reserved"
)

// Values of corev1.LabelArchStable.
const (
	ArchitectureAmd64 = "amd64"
	ArchitectureArm64 = "arm64"
)

// Annotations.
const (
	// DoNotDisruptAnnotationKey protects a Pod or Node from voluntary
	// disruption. On a Pod: "true" or a positive Go duration, counted from the
	// pod's start time. On a Node or NodeClaim: only "true".
	DoNotDisruptAnnotationKey = Group + "/do-not-disrupt"
	// DoNotRepairAnnotationKey, when "true" on a Node or NodeClaim, protects the
	// node from repair. It is independent of DoNotDisruptAnnotationKey.
	DoNotRepairAnnotationKey = Group + "/do-not-repair"
	// DisruptionCostAnnotationKey is the cost of evicting a Pod: a decimal int32.
	DisruptionCostAnnotationKey = Group + "/disruption-cost"
	// RebootGracePeriodAnnotationKey is the Go duration that bounds the drain
	// before the machine of a NodeClaim reboots. Absent means no bound.
	RebootGracePeriodAnnotationKey = Group + "/reboot-termination-grace-period"
	// RebootPreBootIDAnnotationKey is the boot ID of the Node before the first
	// call to reboot. It is removed when the reboot ends.
	RebootPreBootIDAnnotationKey = Group + "/reboot-pre-boot-id"
	// RebootIssuingSinceAnnotationKey is the RFC 3339 time of the first call to
	// reboot. It is removed when the reboot ends. Ours.
	RebootIssuingSinceAnnotationKey = Group + "/reboot-issuing-since"
	// RebootHistoryAnnotationKey lists the RFC 3339 times at which reboots of the
	// NodeClaim were requested, separated by commas. Ours.
	RebootHistoryAnnotationKey = Group + "/reboot-history"
	// NodePoolHashAnnotationKey carries NodePool.Hash on pools and claims.
	NodePoolHashAnnotationKey = Group + "/nodepool-hash"
	// NodePoolHashVersionAnnotationKey carries NodePoolHashVersion beside it.
	NodePoolHashVersionAnnotationKey = Group + "/nodepool-hash-version"
	// NodeClaimTerminationTimestampAnnotationKey is the RFC 3339 time at which
	// the termination grace period of a NodeClaim ends.
	NodeClaimTerminationTimestampAnnotationKey = Group + "/nodeclaim-termination-timestamp"
	// RepairDeadlineAnnotationKey is "true" if node repair has set that time.
	// Repair removes both if the Node recovers before the NodeClaim is deleted.
	// Ours.
	RepairDeadlineAnnotationKey = Group + "/repair-deadline"
	// NodeClaimMinValuesRelaxedAnnotationKey is "true" or "false": whether
	// minValues had to be lowered to create the NodeClaim.
	NodeClaimMinValuesRelaxedAnnotationKey = Group + "/nodeclaim-min-values-relaxed"
	// RequestedDRADriversAnnotationKey is the sorted, comma-separated list of
	// dynamic resource drivers whose devices the claim's pods ask for.
	RequestedDRADriversAnnotationKey = Group + "/requested-dra-drivers"
	// PriceOverlayAppliedAnnotationKey is "true" when an overlay changed the
	// price of any candidate instance type of the NodeClaim.
	PriceOverlayAppliedAnnotationKey = Group + "/price-overlay-applied"
	// CapacityOverlayAppliedAnnotationKey is the same for capacity.
	CapacityOverlayAppliedAnnotationKey = Group + "/capacity-overlay-applied"
	// ReplacesAnnotationKey on a NodeClaim that replaces nodes is the reason,
	// in lower case, for which those nodes are disrupted. Ours.
	ReplacesAnnotationKey = Group + "/replaces"

	// PodGroupsAnnotationKey on a NodeClaim lists the PodGroups of the pods that it was
	// launched for, as plans name them, separated by commas.
	PodGroupsAnnotationKey = Group + "/pod-groups"
	// AdditionalNodePriceAnnotationKey and AdditionalVCPUPriceAnnotationKey on a
	// NodePool override the settings of those names: dollars per hour that count
	// for each of its nodes, and for each vCPU of them. Ours.
	AdditionalNodePriceAnnotationKey = Group + "/additional-node-price"
	AdditionalVCPUPriceAnnotationKey = Group + "/additional-vcpu-price"
	// PreferencePremiumAnnotationKey and PreferenceAllowanceAnnotationKey on a
	// NodePool override the settings of those names: how much more its new nodes
	// may cost for what pods prefer, as a share of 1, and in dollars per hour. Ours.
	PreferencePremiumAnnotationKey   = Group + "/preference-premium"
	PreferenceAllowanceAnnotationKey = Group + "/preference-allowance"
	// MinOnDemandShareAnnotationKey on a NodePool is the minimum share of its
	// nodes' vCPUs that must be on demand, from 0 to 1. Ours.
	MinOnDemandShareAnnotationKey = Group + "/min-on-demand-share"
	// SurgeFirstAnnotationKey on the pod template of a Deployment with one replica asks
	// for its replacement to start before the pod is evicted: "true".
	SurgeFirstAnnotationKey = Group + "/surge-first"
	// MaxSpotPoolShareAnnotationKey on a NodePool overrides the setting of that name,
	// and limits the share of its nodes' vCPUs in one spot pool, too. Ours.
	MaxSpotPoolShareAnnotationKey = Group + "/max-spot-pool-share"
	// KubeletFeatureGatesAnnotationKey on a NodePool or its node class names feature
	// gates that user data or an image sets for kubelets, such as "A=true,B=false".
	// The NodePool counts more. Ours.
	KubeletFeatureGatesAnnotationKey = Group + "/kubelet-feature-gates"
	// RebalanceRecommendedAnnotationKey on a NodeClaim is the time since which
	// its provider recommends replacing the instance, because its spot pool is
	// at risk. Ours.
	RebalanceRecommendedAnnotationKey = Group + "/rebalance-recommended"
	// ConsolidationPaybackTimeAnnotationKey and
	// ConsolidationSavingsThresholdAnnotationKey on a NodePool override the settings
	// of those names: a duration, and a number from 0 to 1. Ours.
	ConsolidationPaybackTimeAnnotationKey      = Group + "/consolidation-payback-time"
	ConsolidationSavingsThresholdAnnotationKey = Group + "/consolidation-savings-threshold"
	// CapacityBufferFakePodAnnotationKey marks an in-memory pod that stands for
	// capacity a CapacityBuffer reserves. No such pod exists in the cluster.
	CapacityBufferFakePodAnnotationKey = Group + "/capacity-buffer-fake-pod"
	// CapacityBufferNameAnnotationKey names the buffer of such a pod.
	CapacityBufferNameAnnotationKey = Group + "/capacity-buffer-name"
	// CapacityBufferNamespaceAnnotationKey is the namespace of that buffer.
	CapacityBufferNamespaceAnnotationKey = Group + "/capacity-buffer-namespace"
	// ProviderCompatibilityAnnotationKey is a legacy key found on claims
	// written by old versions.
	ProviderCompatibilityAnnotationKey = "compatibility.karpenter.sh/provider"
)

// TerminationFinalizer keeps a NodeClaim or Node until its instance is gone.
const TerminationFinalizer = Group + "/termination"

// Keys of the taints Karpenter sets.
const (
	// DisruptedTaintKey marks a node that is being disrupted or terminated.
	DisruptedTaintKey = Group + "/disrupted"
	// UnregisteredTaintKey is put on a node by its kubelet at start and
	// removed by Karpenter when it registers the node.
	UnregisteredTaintKey = Group + "/unregistered"
	// RebootingTaintKey marks a node that reboots.
	RebootingTaintKey = Group + "/rebooting"
)

// RebootingNoScheduleTaint returns the taint of a node that reboots.
func RebootingNoScheduleTaint() corev1.Taint {
	return corev1.Taint{Key: RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// DisruptedNoScheduleTaint returns the taint of a node being disrupted.
func DisruptedNoScheduleTaint() corev1.Taint {
	return corev1.Taint{Key: DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredNoExecuteTaint returns the taint a node starts with.
func UnregisteredNoExecuteTaint() corev1.Taint {
	return corev1.Taint{Key: UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
}

// ResourceNodes is the pseudo-resource that counts nodes in NodePool limits
// and status.
const ResourceNodes = corev1.ResourceName("nodes")
