// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TemplatePod returns the pod that the API server would create from a template,
// with the defaults that matter for scheduling: a limit without a request
// becomes the request, and with host networking every port is a host port. The
// pod has no name; the template is not modified.
func TemplatePod(t *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *t.Spec.DeepCopy()}
	pod.Labels = t.Labels
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	if pod.Spec.HostNetwork {
		takeHostPorts(&pod.Spec)
	}
	return pod
}

// StandIn returns a pending pod of the template, in the state in which the scheduler
// leaves a pod that fits no node. It has no PersistentVolumeClaims, because only real
// pods have them, and it has the lowest priority.
func StandIn(t *corev1.PodTemplateSpec, namespace string, created metav1.Time) *corev1.Pod {
	pod := TemplatePod(t)
	pod.Namespace, pod.CreationTimestamp = namespace, created
	pod.Spec.NodeName = ""
	priority := int32(math.MinInt32)
	pod.Spec.Priority = &priority
	dropClaims(&pod.Spec)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	return pod
}

// dropClaims removes the volumes that need a PersistentVolumeClaim, and where
// they are mounted.
func dropClaims(spec *corev1.PodSpec) {
	dropped := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		claimed := v.PersistentVolumeClaim != nil || v.Ephemeral != nil
		dropped[v.Name] = claimed
		return claimed
	})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			k := &containers[i]
			k.VolumeMounts = slices.DeleteFunc(k.VolumeMounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
			k.VolumeDevices = slices.DeleteFunc(k.VolumeDevices, func(d corev1.VolumeDevice) bool { return dropped[d.Name] })
		}
	}
}
