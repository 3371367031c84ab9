// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AKSNodeClassStatus is what the controller has resolved for new nodes.
type AKSNodeClassStatus struct {
	// Images that nodes boot, in order of preference. An instance type boots the
	// first image whose requirements it meets.
	// +optional
	Images []NodeImage `json:"images,omitempty"`
	// KubernetesVersion of new nodes: the version of the API server, without a
	// leading v. It never decreases.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// LocalDNSState is whether the DNS cache runs on new nodes.
	// +kubebuilder:validation:Enum=Enabled;Disabled
	// +optional
	LocalDNSState *LocalDNSState `json:"localDNSState,omitempty"`
	// Conditions of the node class. Ready depends on ImagesReady,
	// KubernetesVersionReady, SubnetsReady, ValidationSucceeded and LocalDNSReady.
	// No instance is launched unless it is True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeImage is an image that nodes boot.
type NodeImage struct {
	// ID of the image.
	// +required
	ID string `json:"id"`
	// Requirements on the labels of instance types that boot the image.
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}
