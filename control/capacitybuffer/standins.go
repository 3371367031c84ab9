// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/kube/convert"
	"karpenter/world"
)

// most is how many pods one buffer keeps room for.
const most = 10_000

// like returns a pod like those of the template, as the scheduler would leave
// one for which there is no node. What it would keep is left out, since only
// pods that exist have volume claims; and it comes after everything else.
func like(b *v1beta1.CapacityBuffer, t *corev1.PodTemplateSpec) *corev1.Pod {
	pod := convert.TemplatePod(t)
	pod.Namespace, pod.CreationTimestamp = b.Namespace, b.CreationTimestamp
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

// standIns returns n pods like the one given, the same whenever they are made
// for this buffer.
func standIns(b *v1beta1.CapacityBuffer, pod world.Pod, n int) []world.Pod {
	out := make([]world.Pod, n)
	for i := range out {
		out[i] = pod
		out[i].Name = fmt.Sprintf("capacity-buffer-%s-%d", b.Name, i+1)
		out[i].UID = fmt.Sprintf("%s-%d", b.UID, i+1)
	}
	return out
}
