package feed

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/kube/pods"
)

// Trims returns, per kind, how to make objects smaller before a cache keeps
// them. Nobody may write back one of these, but for a Node.
func Trims() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:  {Transform: TrimPod},
		&corev1.Node{}: {Transform: trimNode},

		&corev1.PersistentVolumeClaim{}: {Transform: trimClaim},
		&corev1.PersistentVolume{}:      {Transform: trimVolume},
		&storagev1.StorageClass{}:       {Transform: trimClass},
		&storagev1.CSINode{}:            {Transform: trimCSINode},

		&corev1.Service{}:               {Transform: trimFields},
		&appsv1.ReplicaSet{}:            {Transform: trimFields},
		&appsv1.StatefulSet{}:           {Transform: trimFields},
		&corev1.ReplicationController{}: {Transform: trimFields},
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

// trimClaim drops what is for the driver. The annotations say how far binding
// has come.
func trimClaim(obj any) (any, error) {
	if c, ok := obj.(*corev1.PersistentVolumeClaim); ok {
		c.ManagedFields, c.Labels, c.Finalizers = nil, nil, nil
		c.Spec.Selector, c.Spec.DataSource, c.Spec.DataSourceRef = nil, nil, nil
		c.Spec.Resources, c.Status = corev1.VolumeResourceRequirements{}, corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
	}
	return obj, nil
}

func trimVolume(obj any) (any, error) {
	if v, ok := obj.(*corev1.PersistentVolume); ok {
		v.ManagedFields, v.Annotations, v.Finalizers = nil, nil, nil
		v.Spec.Capacity, v.Spec.MountOptions, v.Spec.ClaimRef = nil, nil, nil
		v.Status = corev1.PersistentVolumeStatus{}
		if v.Spec.CSI != nil {
			v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v.Spec.CSI.Driver}
		}
	}
	return obj, nil
}

func trimClass(obj any) (any, error) {
	if c, ok := obj.(*storagev1.StorageClass); ok {
		c.ManagedFields, c.Labels, c.Parameters, c.MountOptions = nil, nil, nil, nil
	}
	return obj, nil
}

func trimCSINode(obj any) (any, error) {
	if n, ok := obj.(*storagev1.CSINode); ok {
		n.ManagedFields, n.Labels, n.Annotations = nil, nil, nil
		for i := range n.Spec.Drivers {
			n.Spec.Drivers[i].NodeID, n.Spec.Drivers[i].TopologyKeys = "", nil
		}
	}
	return obj, nil
}

// trimFields drops who wrote which field, and leaves the rest to others that
// read the kind.
func trimFields(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
