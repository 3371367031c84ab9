// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim is a request for one instance, and the record of its life cycle.
// Karpenter creates NodeClaims from NodePools. If you delete one, Karpenter
// drains and terminates its node.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type",description=""
// +kubebuilder:printcolumn:name="Capacity",type="string",JSONPath=".metadata.labels.karpenter\\.sh/capacity-type",description=""
// +kubebuilder:printcolumn:name="Zone",type="string",JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone",description=""
// +kubebuilder:printcolumn:name="Node",type="string",JSONPath=".status.nodeName",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="ImageID",type="string",JSONPath=".status.imageID",priority=1,description=""
// +kubebuilder:printcolumn:name="ID",type="string",JSONPath=".status.providerID",priority=1,description=""
// +kubebuilder:printcolumn:name="NodePool",type="string",JSONPath=".metadata.labels.karpenter\\.sh/nodepool",priority=1,description=""
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.nodeClassRef.name",priority=1,description=""
// +kubebuilder:printcolumn:name="Drifted",type="string",JSONPath=".status.conditions[?(@.type==\"Drifted\")].status",priority=1,description=""
type NodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
	// +required
	Spec   NodeClaimSpec   `json:"spec"`
	Status NodeClaimStatus `json:"status,omitempty"`
}

// NodeClaimList is a list of NodeClaims.
//
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeClaim `json:"items"`
}

// NodeClaimSpec is the requested instance. It never changes.
type NodeClaimSpec struct {
	// Taints of the node.
	// +listType=atomic
	// +optional
	Taints []Taint `json:"taints,omitempty"`
	// StartupTaints are on the new node until another program removes them. The
	// node is not initialized while it has them.
	// +listType=atomic
	// +optional
	StartupTaints []Taint `json:"startupTaints,omitempty"`
	// Requirements constrain the labels of the node, and so its instance type, zone
	// and capacity type. The provider launches one offering that meets all of them.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() > 0))",message="requirements with operator 'In' must have a value defined"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",message="requirements with operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single non-negative integer value"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x.operator == 'In' && has(x.minValues)) || (has(x.values) && x.values.size() >= x.minValues))",message="requirements with operator 'In' and minValues must have at least minValues values"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []NodeSelectorRequirementWithMinValues `json:"requirements"`
	// Resources that the instance must have at least.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`
	// NodeClassRef names the node class, which configures the instance.
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is how long the node can drain, such as 1h30m, from
	// the deletion of this NodeClaim. Then the remaining pods are deleted. If
	// unset, a drain can wait forever.
	// +kubebuilder:validation:Pattern=`^(([0-9]{1,6}h|[0-9]{1,7}m|[0-9]{1,9}s)+|(1[0-9]{6}|2[0-4][0-9]{5})h([0-9]{1,2}m)?([0-9]{1,2}s)?|[0-9]{8}m|[1-8][0-9]{9}s)$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Type=string
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which this claim is deleted, such as 720h, or
	// Never. Default 720h.
	// +kubebuilder:default:="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ResourceRequirements are the resources that an instance must have.
type ResourceRequirements struct {
	// Requests is the sum of the pods that the node is for and of the DaemonSet
	// pods that will run on it. Instance types with less allocatable resources are
	// not launched.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// NodeClaimStatus is the observed state of the instance.
type NodeClaimStatus struct {
	// NodeName is the name of the Node, after the instance has registered.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID identifies the instance at the provider, after the launch. With
	// AWS, it is aws:///<zone>/<instance ID>.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID identifies the image of the instance. With AWS, it is the ID of the
	// AMI.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is the total capacity of the instance: the capacity of the instance
	// type, until the Node reports its own.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is the part of the capacity that pods can use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// LastPodEventTime is when a pod was last bound to the node, removed from it,
	// or finished there. consolidateAfter counts from it.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty"`
	// Conditions of the NodeClaim. Ready needs Launched, Registered and
	// Initialized. Drifted and Consolidatable say whether the node can be
	// disrupted. Drained, VolumesDetached and InstanceTerminating show the progress
	// of its termination.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a metav1.Condition whose reason and message may be absent, so
// that claims written by old versions remain valid. The two convert into each
// other: metav1.Condition(c).
type Condition struct {
	// Type of the condition.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	// +required
	Type string `json:"type"`
	// Status is True, False or Unknown.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Status metav1.ConditionStatus `json:"status"`
	// ObservedGeneration is the generation of the claim the condition was set
	// for.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Reason is a word for programs saying why the status is what it is.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$`
	// +optional
	Reason string `json:"reason"`
	// Message says the same to people.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message"`
}
