// SPDX-License-Identifier: Apache-2.0

package convert

import corev1 "k8s.io/api/core/v1"

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
