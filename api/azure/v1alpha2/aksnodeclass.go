// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/api/azure/v1beta1"
)

// AKSNodeClass configures how Azure virtual machines become nodes of an AKS
// cluster: image, disk, network, kubelet, operating system. NodePools refer to
// it.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="karpenter.azure.com/v1alpha2 AKSNodeClass is deprecated; use karpenter.azure.com/v1beta1"
// +kubebuilder:resource:path=aksnodeclasses,scope=Cluster,categories={karpenter,nap},shortName={aksnc,aksncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="ImageFamily",type="string",JSONPath=".spec.imageFamily",priority=1,description=""
type AKSNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   v1beta1.AKSNodeClassSpec   `json:"spec,omitempty"`
	Status v1beta1.AKSNodeClassStatus `json:"status,omitempty"`
}

// AKSNodeClassList is a list of AKSNodeClasses.
//
// +kubebuilder:object:root=true
type AKSNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AKSNodeClass `json:"items"`
}

// GroupVersion returns karpenter.azure.com/v1alpha2.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1beta1.Group, Version: "v1alpha2"}
}
