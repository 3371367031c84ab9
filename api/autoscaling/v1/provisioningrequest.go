// SPDX-License-Identifier: Apache-2.0

// Package v1 has the parts of autoscaling.x-k8s.io/v1 that Karpenter reads and
// writes: the ProvisioningRequest, by which Kueue asks for capacity before it
// admits a workload. The project of cluster-autoscaler owns the CRD.
//
// +kubebuilder:skip
package v1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The classes of requests that Karpenter serves.
const (
	// CheckCapacity asks whether there is capacity, and launches none.
	CheckCapacity = "check-capacity.autoscaling.x-k8s.io"
	// BestEffortAtomicScaleUp asks for all of the capacity to be launched, or none.
	BestEffortAtomicScaleUp = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
)

// Parameters of requests.
const (
	// NoRetry set to "true" makes a request of the class CheckCapacity fail at
	// once if there is no capacity.
	NoRetry = "noRetry"
	// ValidUntilSeconds is how long after its creation a request may be tried.
	ValidUntilSeconds = "ValidUntilSeconds"
)

// ConsumeAnnotation on a pod names the ProvisioningRequest whose capacity it uses.
const ConsumeAnnotation = "autoscaling.x-k8s.io/consume-provisioning-request"

// Conditions of a ProvisioningRequest.
const (
	Accepted        = "Accepted"
	Provisioned     = "Provisioned"
	Failed          = "Failed"
	BookingExpired  = "BookingExpired"
	CapacityRevoked = "CapacityRevoked"
)

// ProvisioningRequest asks for capacity for pods that do not exist yet.
type ProvisioningRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProvisioningRequestSpec   `json:"spec,omitempty"`
	Status ProvisioningRequestStatus `json:"status,omitempty"`
}

// ProvisioningRequestSpec is immutable.
type ProvisioningRequestSpec struct {
	PodSets               []PodSet          `json:"podSets,omitempty"`
	ProvisioningClassName string            `json:"provisioningClassName,omitempty"`
	Parameters            map[string]string `json:"parameters,omitempty"`
}

// PodSet is a number of equal pods.
type PodSet struct {
	PodTemplateRef Reference `json:"podTemplateRef"`
	Count          int32     `json:"count"`
}

// Reference names an object in the same namespace.
type Reference struct {
	Name string `json:"name,omitempty"`
}

// ProvisioningRequestStatus is the observed state of a request.
type ProvisioningRequestStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisioningRequestList is a list of ProvisioningRequests.
type ProvisioningRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProvisioningRequest `json:"items"`
}

// AddToScheme registers the kinds.
func AddToScheme(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "autoscaling.x-k8s.io", Version: "v1"}
	s.AddKnownTypes(version, &ProvisioningRequest{}, &ProvisioningRequestList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}

// DeepCopyInto copies all into out.
func (r *ProvisioningRequest) DeepCopyInto(out *ProvisioningRequest) {
	*out = *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.PodSets, out.Spec.Parameters = slices.Clone(r.Spec.PodSets), maps.Clone(r.Spec.Parameters)
	out.Status.Conditions = slices.Clone(r.Status.Conditions)
}

// DeepCopy returns a copy.
func (r *ProvisioningRequest) DeepCopy() *ProvisioningRequest {
	out := &ProvisioningRequest{}
	r.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (r *ProvisioningRequest) DeepCopyObject() runtime.Object { return r.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *ProvisioningRequestList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return &out
}
