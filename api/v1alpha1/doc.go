// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the karpenter.sh/v1alpha1 resource NodeOverlay, which
// corrects what Karpenter believes about the price and the capacity of instance
// types. It takes effect only under the NodeOverlay feature gate.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
