// SPDX-License-Identifier: Apache-2.0

package kubelet

import corev1 "k8s.io/api/core/v1"

// trim drops what the simulation never reads before an object enters the cache. A pod's metadata stays whole apart from
// managed fields, because status updates carry it back; its spec does not matter there, for the API server keeps its own.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		o.ManagedFields = nil
		o.Status.Images = nil
	case *corev1.Pod:
		o.ManagedFields = nil
		o.Spec = corev1.PodSpec{
			NodeName:       o.Spec.NodeName,
			HostNetwork:    o.Spec.HostNetwork,
			RestartPolicy:  o.Spec.RestartPolicy,
			Containers:     trimContainers(o.Spec.Containers),
			InitContainers: trimContainers(o.Spec.InitContainers),
		}
	}
	return object, nil
}

func trimContainers(all []corev1.Container) []corev1.Container {
	if len(all) == 0 {
		return nil
	}
	trimmed := make([]corev1.Container, len(all))
	for i := range all {
		c := &all[i]
		trimmed[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return trimmed
}
