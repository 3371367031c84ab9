// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// StuckAfter is how long past its grace a terminating pod counts as stuck.
const StuckAfter = time.Minute

// Terminal reports whether the pod has ended.
func Terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Terminating reports whether the pod is being deleted.
func Terminating(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

// Active reports whether the pod is neither terminal nor terminating.
func Active(p *corev1.Pod) bool { return !Terminal(p) && !Terminating(p) }

// Static reports whether the pod belongs to its Node.
func Static(p *corev1.Pod) bool { return ownedBy(p, "v1", "Node") }

// DaemonSet reports whether the pod belongs to a DaemonSet.
func DaemonSet(p *corev1.Pod) bool { return ownedBy(p, "apps/v1", "DaemonSet") }

// Ready reports whether the pod is ready.
func Ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Deployment returns the name of the Deployment whose ReplicaSet controls the pod, or
// of the ReplicaSet if it has no Deployment; "" = no ReplicaSet controls the pod.
func Deployment(p *corev1.Pod) string {
	o := metav1.GetControllerOfNoCopy(p)
	if o == nil || o.Kind != "ReplicaSet" {
		return ""
	}
	return strings.TrimSuffix(o.Name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
}

// Critical reports whether the pod bears a system priority class. The numeric
// priority does not count.
func Critical(p *corev1.Pod) bool {
	return p.Spec.PriorityClassName == "system-cluster-critical" || p.Spec.PriorityClassName == "system-node-critical"
}

// Resizing reports whether the kubelet changes what the pod may use, in place.
func Resizing(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizeInProgress && c.Status == corev1.ConditionTrue
	})
}

// ToleratesDisrupted reports whether the pod tolerates the disrupted taint, and
// so stays until the node terminates.
func ToleratesDisrupted(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
			return false
		}
		if t.Operator == corev1.TolerationOpExists {
			return t.Key == "" || t.Key == v1.DisruptedTaintKey
		}
		equal := t.Operator == "" || t.Operator == corev1.TolerationOpEqual
		return equal && t.Key == v1.DisruptedTaintKey && t.Value == ""
	})
}

// Stuck reports whether the pod should have terminated more than StuckAfter
// ago.
func Stuck(p *corev1.Pod, now time.Time) bool {
	// The deletion timestamp includes the pod's grace.
	return Terminating(p) && now.Sub(p.DeletionTimestamp.Time) > StuckAfter
}

// Drainable reports whether the pod has to leave the node before the instance
// terminates. Protected pods are drainable.
func Drainable(p *corev1.Pod, now time.Time) bool {
	return !ToleratesDisrupted(p) && !Stuck(p, now) && !Static(p)
}

// Waiting reports whether a drain has to wait for the pod.
func Waiting(p *corev1.Pod, now time.Time) bool { return Drainable(p, now) && !Terminal(p) }

// Evictable reports whether the pod may be evicted now.
func Evictable(p *corev1.Pod, now time.Time) bool {
	return Active(p) && !ToleratesDisrupted(p) && !Static(p) && !ProtectionOf(p, now).InForce()
}

// Reschedulable reports whether the pod needs a place elsewhere when its node
// is removed. The replacement of a terminating StatefulSet pod has its name and
// is only made once the pod is gone, so that pod stands for its replacement.
func Reschedulable(p *corev1.Pod) bool {
	comesBack := Active(p) || Terminating(p) && ownedBy(p, "apps/v1", "StatefulSet")
	return comesBack && !DaemonSet(p) && !Static(p)
}

func ownedBy(p *corev1.Pod, apiVersion, kind string) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == apiVersion && o.Kind == kind
	})
}
