// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Annotations.
const (
	// HashAnnotationKey carries AKSNodeClass.Hash on node classes and claims.
	HashAnnotationKey = Group + "/aksnodeclass-hash"
	// HashVersionAnnotationKey carries HashVersion beside it.
	HashVersionAnnotationKey = Group + "/aksnodeclass-hash-version"
	// InPlaceUpdateHashAnnotationKey carries, on a NodeClaim, the hash of the
	// settings that its instance was last updated to.
	InPlaceUpdateHashAnnotationKey = Group + "/in-place-update-hash"
	// InPlaceUpdateTagsAnnotationKey carries, on a NodeClaim, the keys of the tags that
	// Karpenter has given its instance, as a list in JSON. It takes away no others.
	InPlaceUpdateTagsAnnotationKey = Group + "/in-place-update-tags"
	// MachineResourceIDAnnotationKey carries, on a NodeClaim, the ARM ID of its
	// AKS machine. A claim without it is backed by a virtual machine alone.
	MachineResourceIDAnnotationKey = Group + "/aks-machine-resource-id"
)

// TerminationFinalizer keeps an AKSNodeClass while NodeClaims refer to it.
const TerminationFinalizer = Group + "/termination"

// Keys of tags in Azure, where a key cannot contain a slash.
const (
	// ClusterTagKey carries the name of the cluster.
	ClusterTagKey = Group + "_cluster"
	// BillingTagKey is "linux" on all instances.
	BillingTagKey = "compute.aks.billing"
	// NodePoolTagKey carries the NodePool.
	NodePoolTagKey = "karpenter.sh_nodepool"
	// MachineNodeClaimTagKey carries, on an AKS machine, the NodeClaim.
	MachineNodeClaimTagKey = Group + "_aksmachine_nodeclaim"
	// NodeClaimTagKey carries, on a VM whose name is a shortened one, the NodeClaim.
	NodeClaimTagKey = Group + "_nodeclaim"
)
