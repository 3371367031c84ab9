package feed

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/kube/pods"
)

// Trims returns, per kind, how to make objects smaller before a cache keeps
// them. Nobody may write back a Pod that has been trimmed.
func Trims() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:  {Transform: TrimPod},
		&corev1.Node{}: {Transform: trimNode},
	}
}

// TrimPod drops what only the pod's kubelet and its owner need.
func TrimPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	p.ManagedFields = slices.DeleteFunc(p.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != pods.NominationManager })
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			trimContainer(&containers[i])
		}
	}
	p.Spec.EphemeralContainers = nil
	return p, nil
}

func trimContainer(k *corev1.Container) {
	k.Image, k.WorkingDir = "", ""
	k.Command, k.Args, k.EnvFrom, k.Env = nil, nil, nil, nil
	k.VolumeMounts, k.VolumeDevices = nil, nil
	k.LivenessProbe, k.ReadinessProbe, k.StartupProbe, k.Lifecycle = nil, nil, nil, nil
	k.SecurityContext = nil
}

// trimNode drops what nobody reads. Nodes are written, but by patches made
// from two trimmed copies.
func trimNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.ManagedFields = nil
		n.Status.Images = nil
	}
	return obj, nil
}
