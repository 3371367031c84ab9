// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of AKSNodeClass, and the label domain of the
	// provider.
	Group = "karpenter.azure.com"
	// Version is the version of the resources in this package.
	Version = "v1beta1"
)

// GroupVersion returns karpenter.azure.com/v1beta1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme registers the resources of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &AKSNodeClass{}, &AKSNodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
