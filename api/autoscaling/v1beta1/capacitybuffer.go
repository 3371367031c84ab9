// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActiveProvisioningStrategy is the strategy a buffer gets by default, and the
// only one that means something: keep real nodes ready.
const ActiveProvisioningStrategy = "buffer.x-k8s.io/active-capacity"

// Condition types of a CapacityBuffer.
const (
	// ReadyForProvisioningCondition says whether the buffer could be resolved
	// to a pod and a number of replicas.
	ReadyForProvisioningCondition = "ReadyForProvisioning"
	// ProvisioningCondition says whether the capacity is there.
	ProvisioningCondition = "Provisioning"
	// LimitedByQuotasCondition is there, and True, while the limits on the
	// buffers of the namespace leave capacity for fewer pods than the buffer asks for.
	LimitedByQuotasCondition = "LimitedByQuotas"
)

// Reasons of ReadyForProvisioningCondition.
const (
	ResolvedReason            = "Resolved"
	PodTemplateNotFoundReason = "PodTemplateNotFound"
	ScalableRefNotFoundReason = "ScalableRefNotFound"
	ResolutionFailedReason    = "ResolutionFailed"
)

// Reasons of ProvisioningCondition.
const (
	FitsExistingCapacityReason    = "FitsExistingCapacity"
	RequiresNewCapacityReason     = "RequiresNewCapacity"
	NotReadyForProvisioningReason = "NotReadyForProvisioning"
	BufferEmptyReason             = "BufferEmpty"
)

// NamespaceLimitReason is the reason of LimitedByQuotasCondition.
const NamespaceLimitReason = "NamespaceLimit"

// CapacityBuffer keeps capacity ready for pods like those of a template or a
// workload, so that new pods start without waiting for a node. Needs the feature
// gate CapacityBuffer.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=capacitybuffers,scope=Namespaced,categories=autoscaling,shortName=cb
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Strategy",type="string",JSONPath=".spec.provisioningStrategy",description=""
// +kubebuilder:printcolumn:name="PodTemplate",type="string",JSONPath=".status.podTemplateRef.name",description=""
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description=""
// +kubebuilder:printcolumn:name="ConditionsType",type="string",JSONPath=".status.conditions[*].type",description=""
// +kubebuilder:printcolumn:name="ConditionsStatus",type="string",JSONPath=".status.conditions[*].status",description=""
// +kubebuilder:printcolumn:name="ConditionsReason",type="string",JSONPath=".status.conditions[*].reason",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
type CapacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   CapacityBufferSpec   `json:"spec"`
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// CapacityBufferList is a list of CapacityBuffers.
//
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityBuffer `json:"items"`
}

// CapacityBufferSpec is the desired capacity.
//
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",message="replicas or limits must be set when podTemplateRef is set"
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplateRef) || !has(self.scalableRef)",message="podTemplateRef and scalableRef may not both be set"
type CapacityBufferSpec struct {
	// ProvisioningStrategy is how the capacity is kept. Only
	// buffer.x-k8s.io/active-capacity is supported, which keeps nodes running.
	// Default buffer.x-k8s.io/active-capacity.
	// +kubebuilder:default:="buffer.x-k8s.io/active-capacity"
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// PodTemplateRef names the PodTemplate of the pods, in the same namespace. It
	// needs replicas or limits, and excludes scalableRef.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// ScalableRef names the workload of the pods, in the same namespace. It
	// excludes podTemplateRef.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`
	// Replicas is the number of pods that capacity is kept for. If percentage gives
	// another number, the larger one applies. At most 10,000 pods count.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Percentage is the number of pods as a share of the replicas of the workload,
	// rounded up, and at least one pod. It can exceed 100. A workload without
	// replicas gives none. Ignored without scalableRef.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`
	// Limits bound what the pods can request together. The number of pods is
	// reduced to what fits. Without replicas and percentage, the limits alone
	// decide. Resources that the pods do not request do not count.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// LocalObjectRef names an object in the same namespace.
type LocalObjectRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// ScalableRef names a workload in the same namespace.
type ScalableRef struct {
	// APIGroup of the workload: apps, which empty means, too.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the workload: Deployment, StatefulSet or ReplicaSet.
	// +kubebuilder:validation:MinLength=1
	// +required
	Kind string `json:"kind"`
	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// CapacityBufferStatus is what is known of a CapacityBuffer.
type CapacityBufferStatus struct {
	// PodTemplateRef is the template that was found; absent for a workload.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// PodTemplateGeneration is the generation of that template; absent for a
	// workload.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`
	// Replicas is the number of pods that capacity is kept for now.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// ProvisioningStrategy is that of the spec.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// Conditions of the buffer: ReadyForProvisioning says whether pods and their
	// number are known, Provisioning whether there is capacity for them. There is no
	// Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
