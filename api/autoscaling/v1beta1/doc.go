// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the autoscaling.x-k8s.io/v1beta1 resource
// CapacityBuffer: spare capacity kept ready for pods that do not exist yet. It
// takes effect only under the CapacityBuffer feature gate.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.x-k8s.io
package v1beta1
