// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of the node class, as NodePools refer to it.
const Kind = "KWOKNodeClass"

// Labels of the nodes the provider makes. All are well-known.
const (
	// InstanceSizeLabelKey is the size part of the instance type's name.
	InstanceSizeLabelKey = Group + "/instance-size"
	// InstanceFamilyLabelKey is the family part of it.
	InstanceFamilyLabelKey = Group + "/instance-family"
	// InstanceMemoryLabelKey is the memory of the instance type.
	InstanceMemoryLabelKey = Group + "/instance-memory"
	// InstanceCPULabelKey is the number of its processors.
	InstanceCPULabelKey = Group + "/instance-cpu"
)

// KWOKNodeClass configures nodes without instances.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=kwoknodeclasses,scope=Cluster,categories=karpenter,shortName={kwoknc,kwokncs}
// +kubebuilder:subresource:status
type KWOKNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KWOKNodeClassSpec `json:"spec,omitempty"`
	// +kubebuilder:default:={conditions: {{type: "Ready", status: "True", lastTransitionTime: "2024-01-01T01:01:01Z", reason: "Ready", message: ""}}}
	Status KWOKNodeClassStatus `json:"status,omitempty"`
}

// KWOKNodeClassList is a list of KWOKNodeClasses.
//
// +kubebuilder:object:root=true
type KWOKNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KWOKNodeClass `json:"items"`
}

// KWOKNodeClassSpec is what the user can set.
type KWOKNodeClassSpec struct {
	// NodeRegistrationDelay is the time between a launch and the appearance of the
	// Node. Unset means none.
	// +kubebuilder:validation:Pattern=`^(([0-9]{1,6}h|[0-9]{1,7}m|[0-9]{1,9}s)+|(1[0-9]{6}|2[0-4][0-9]{5})h([0-9]{1,2}m)?([0-9]{1,2}s)?|[0-9]{8}m|[1-8][0-9]{9}s)$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Type=string
	// +optional
	NodeRegistrationDelay *metav1.Duration `json:"nodeRegistrationDelay,omitempty"`
}

// KWOKNodeClassStatus is always ready: the CRD defaults it so.
type KWOKNodeClassStatus struct {
	// Conditions of the node class. The root, and only one, is Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
