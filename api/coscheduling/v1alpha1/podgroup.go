// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the parts of scheduling.x-k8s.io/v1alpha1 that Karpenter
// reads, the API of the coscheduling plugin of kube-scheduler. The plugin's
// project owns the CRD.
//
// +kubebuilder:skip
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodGroupLabel names the PodGroup of a pod, in the pod's namespace.
const PodGroupLabel = "scheduling.x-k8s.io/pod-group"

// CoschedulingPodGroup is a PodGroup of the plugin. Its kind is PodGroup; the name of
// the type tells it from the PodGroup of Kubernetes itself.
type CoschedulingPodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CoschedulingPodGroupSpec `json:"spec,omitempty"`
}

// CoschedulingPodGroupSpec is what Karpenter reads of the spec.
type CoschedulingPodGroupSpec struct {
	// MinMember is how many pods of the group must start together.
	MinMember int32 `json:"minMember,omitempty"`
}

// CoschedulingPodGroupList is a list of PodGroups.
type CoschedulingPodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CoschedulingPodGroup `json:"items"`
}

// AddToScheme registers the kinds.
func AddToScheme(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"}
	s.AddKnownTypeWithName(version.WithKind("PodGroup"), &CoschedulingPodGroup{})
	s.AddKnownTypeWithName(version.WithKind("PodGroupList"), &CoschedulingPodGroupList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}

// DeepCopyObject implements runtime.Object.
func (g *CoschedulingPodGroup) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *CoschedulingPodGroupList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*CoschedulingPodGroup))
	}
	return &out
}
