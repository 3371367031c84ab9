// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	"karpenter/world"
)

// podGroup returns the name of the pod's PodGroup, or "" if the pod is in none.
func (c Converter) podGroup(p *corev1.Pod) string {
	if g := p.Spec.SchedulingGroup; g != nil && !c.PodGroupsUnread {
		return nativeGroup(p.Namespace, ptr.Deref(g.PodGroupName, "(of an unknown kind)"))
	}
	if name := p.Labels[coschedulingv1alpha1.PodGroupLabel]; c.Coscheduling && name != "" {
		return coschedulingGroup(p.Namespace, name)
	}
	return ""
}

// nativeGroup and coschedulingGroup return the names of PodGroups in the world: both
// APIs may have one of the same name in a namespace.
func nativeGroup(namespace, name string) string { return namespace + "/" + name }

func coschedulingGroup(namespace, name string) string {
	return namespace + coschedulingInfix + name
}

const coschedulingInfix = "/podgroups.scheduling.x-k8s.io/"

// PodGroupObject returns an object that stands for the PodGroup in events.
func PodGroupObject(g world.PodGroup) client.Object {
	if namespace, name, ok := strings.Cut(g.Name, coschedulingInfix); ok {
		return &coschedulingv1alpha1.CoschedulingPodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(g.UID)}}
	}
	namespace, name, _ := strings.Cut(g.Name, "/")
	return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(g.UID)}}
}

// PodGroup returns the PodGroup of Kubernetes as the world knows it.
func (c Converter) PodGroup(g *schedulingv1beta1.PodGroup) world.PodGroup {
	out, policy := world.PodGroup{Name: nativeGroup(g.Namespace, g.Name), UID: string(g.UID)}, g.Spec.SchedulingPolicy
	switch {
	case g.Spec.ParentCompositePodGroupName != nil:
		out.Refused = "it is part of a CompositePodGroup (not supported yet)"
	case policy.Gang != nil:
		out.MinCount = int(policy.Gang.MinCount)
	case policy.Basic == nil:
		out.Refused = "its schedulingPolicy is neither basic nor gang"
	}
	out.Together = g.Spec.DisruptionMode != nil && g.Spec.DisruptionMode.All != nil
	if c := g.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		out.TopologyKey, out.MinCount = c.Topology[0].Key, max(out.MinCount, 1)
	}
	return out
}

// CoschedulingPodGroup returns the PodGroup of the coscheduling plugin as the world
// knows it.
func (c Converter) CoschedulingPodGroup(g *coschedulingv1alpha1.CoschedulingPodGroup) world.PodGroup {
	return world.PodGroup{Name: coschedulingGroup(g.Namespace, g.Name), UID: string(g.UID), MinCount: int(g.Spec.MinMember)}
}
