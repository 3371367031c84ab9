// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TemplatePod returns the pod the API server would make of a template, as far
// as that matters for where it goes: where the template has only a limit, that
// much is requested, and on the host's network every port is the host's. The pod has no name yet; the template is not modified.
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

// StandIn returns a pod like those of the template, as the scheduler would leave one for
// which there is no node. What it would keep is left out, since only pods that exist
// have volume claims; and it comes after everything else.
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
