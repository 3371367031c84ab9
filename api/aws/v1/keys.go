// SPDX-License-Identifier: Apache-2.0

package v1

// Annotations.
const (
	// HashAnnotationKey carries EC2NodeClass.Hash on node classes and claims.
	HashAnnotationKey = Group + "/ec2nodeclass-hash"
	// HashVersionAnnotationKey carries HashVersion beside it.
	HashVersionAnnotationKey = Group + "/ec2nodeclass-hash-version"
	// TaggedAnnotationKey is "true" on a NodeClaim whose instance has the tags
	// that are known only after its launch.
	TaggedAnnotationKey = Group + "/tagged"
	// ClusterNameTaggedAnnotationKey is "true" on a NodeClaim whose instance
	// has the tag with the cluster's name.
	ClusterNameTaggedAnnotationKey = CompatibilityGroup + "/cluster-name-tagged"
	// InstanceProfileNameAnnotationKey is the instance profile a NodeClaim was
	// launched with.
	InstanceProfileNameAnnotationKey = Group + "/instance-profile-name"
	// ConsumableCapacityAnnotationKey says on an EC2NodeClass how claims share the
	// GPUs of its nodes, as NVIDIA's driver for dynamic resource allocation is
	// configured there.
	ConsumableCapacityAnnotationKey = Group + "/nvidia-consumable-capacity"
)

// TerminationFinalizer keeps an EC2NodeClass while NodeClaims refer to it, and
// until what was made for it in AWS is gone.
const TerminationFinalizer = Group + "/termination"

// Keys of tags in EC2.
const (
	// ClusterNameTagKey carries the name of the cluster.
	ClusterNameTagKey = "eks:eks-cluster-name"
	// ClusterTagPrefix with the name of the cluster behind it is the tag by
	// which other controllers know what belongs to the cluster.
	ClusterTagPrefix = "kubernetes.io/cluster/"
	// NodePoolTagKey carries the NodePool.
	NodePoolTagKey = "karpenter.sh/nodepool"
	// NodeClaimTagKey carries the NodeClaim.
	NodeClaimTagKey = "karpenter.sh/nodeclaim"
	// NodeClassTagKey carries the EC2NodeClass.
	NodeClassTagKey = NodeClassLabelKey
	// LaunchTagPrefix with a number is a tag that an instance has from its
	// launch. It lists the NodeClaims of the fleet, by nine characters for
	// each, so that no NodeClaim is launched twice.
	LaunchTagPrefix = Group + "/launch-"
	// NameTagKey carries the name that the AWS console shows: the Node, unless
	// the user sets another name.
	NameTagKey = "Name"
)
