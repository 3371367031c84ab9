// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of EC2NodeClass, and the label domain of the
	// provider.
	Group = "karpenter.k8s.aws"
	// CompatibilityGroup is the domain of a few annotations.
	CompatibilityGroup = "compatibility." + Group
	// Version is the version of the resources in this package.
	Version = "v1"
)

// GroupVersion returns karpenter.k8s.aws/v1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme registers the resources of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
