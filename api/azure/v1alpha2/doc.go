// SPDX-License-Identifier: Apache-2.0

// Package v1alpha2 holds the deprecated version karpenter.azure.com/v1alpha2 of
// AKSNodeClass. Its shape is that of v1beta1, so the API server converts between
// the two by changing apiVersion. The program reads and writes v1beta1 only; this
// package exists for the CRD and for those who decode older manifests.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.azure.com
package v1alpha2
