// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the karpenter.kwok.sh/v1alpha1 resource KWOKNodeClass,
// the node class of the provider that makes nodes without machines.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.kwok.sh
package v1alpha1
