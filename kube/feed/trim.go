// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	helpers "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

// Trims returns, for each kind, how a cache makes objects smaller before it
// keeps them. Don't write such an object back to the API server, unless it is a
// Node or a NodeClaim. Equal parts of objects are kept once.
func Trims() map[client.Object]cache.ByObject {
	s := &shared{}
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:   {Transform: trimmed(trimPod, s.pod)},
		&corev1.Node{}:  {Transform: trimmed(trimNode, s.node)},
		&v1.NodeClaim{}: {Transform: trimmed(func(c *v1.NodeClaim) { c.ManagedFields = nil }, s.claim)},

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

// trimmed returns a transform that trims and shares objects of one kind, and
// leaves other objects alone.
func trimmed[T client.Object](trim, share func(T)) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(T); ok {
			trim(o)
			share(o)
		}
		return obj, nil
	}
}

// TrimPod drops what only the pod's kubelet and its owner need.
func TrimPod(obj any) (any, error) {
	if p, ok := obj.(*corev1.Pod); ok {
		trimPod(p)
	}
	return obj, nil
}

func trimPod(p *corev1.Pod) {
	p.ManagedFields = slices.DeleteFunc(p.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager != pods.NominationManager })
	if len(p.ManagedFields) == 0 {
		p.ManagedFields = nil
	}
	p.GenerateName, p.Finalizers = "", nil
	p.Annotations = keptAnnotations(p.Annotations)
	p.Status = keptStatus(p) // of the containers as they are
	p.Spec = keptSpec(&p.Spec)
}

// keptAnnotations returns those that are read.
func keptAnnotations(all map[string]string) map[string]string {
	var out map[string]string
	for _, key := range []string{v1.DoNotDisruptAnnotationKey, v1.DisruptionCostAnnotationKey, v1.SurgeFirstAnnotationKey, corev1.PodDeletionCost, autoscalingv1.ConsumeAnnotation} {
		if value, ok := all[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// keptSpec returns what is read of a spec: what decides where the pod may run
// and how it is drained.
func keptSpec(s *corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: s.NodeName, NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations,
		TopologySpreadConstraints: s.TopologySpreadConstraints,
		PriorityClassName:         s.PriorityClassName, Priority: s.Priority,
		InitContainers: keptContainers(s.InitContainers), Containers: keptContainers(s.Containers),
		Overhead: s.Overhead, Resources: s.Resources, ResourceClaims: s.ResourceClaims, SchedulingGroup: s.SchedulingGroup,
		HostNetwork: s.HostNetwork, HostUsers: s.HostUsers, Volumes: keptVolumes(s.Volumes),
		TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
	}
}

func keptContainers(all []corev1.Container) []corev1.Container {
	if len(all) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(all))
	for i := range all {
		k := &all[i]
		out[i] = corev1.Container{Name: k.Name, Resources: k.Resources, RestartPolicy: k.RestartPolicy, RestartPolicyRules: k.RestartPolicyRules}
		for _, m := range k.VolumeMounts {
			if len(m.BindMountOptions) > 0 {
				out[i].VolumeMounts = append(out[i].VolumeMounts, m)
			}
		}
		for _, port := range k.Ports {
			if port.HostPort != 0 {
				out[i].Ports = append(out[i].Ports, port)
			}
		}
	}
	return out
}

// keptVolumes returns those that stand for a claim.
func keptVolumes(all []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range all {
		if v := &all[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			out = append(out, *v)
		}
	}
	return out
}

// keptStatus returns what is read of the status of a pod with all of its spec.
// The start time is read from the annotation only.
func keptStatus(p *corev1.Pod) corev1.PodStatus {
	s := &p.Status
	out := corev1.PodStatus{
		Phase: s.Phase, NominatedNodeName: s.NominatedNodeName, ResourceClaimStatuses: s.ResourceClaimStatuses,
	}
	if resized(p) {
		out.InitContainerStatuses, out.ContainerStatuses = resourcesOf(s.InitContainerStatuses), resourcesOf(s.ContainerStatuses)
	}
	if _, ok := p.Annotations[v1.DoNotDisruptAnnotationKey]; ok {
		out.StartTime = s.StartTime
	}
	for _, c := range s.Conditions {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodResizePending, corev1.PodResizeInProgress:
			out.Conditions = append(out.Conditions, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	out.Conditions = slices.Clip(out.Conditions)
	return out
}

// resized reports whether some container has other resources than its spec asks for,
// or was denied a resize. What the pod requests is then a sum over all of its
// statuses.
func resized(p *corev1.Pod) bool {
	return helpers.IsPodResizeInfeasible(p) ||
		differ(p.Status.InitContainerStatuses, p.Spec.InitContainers) || differ(p.Status.ContainerStatuses, p.Spec.Containers)
}

func differ(all []corev1.ContainerStatus, of []corev1.Container) bool {
	return slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool {
		i := slices.IndexFunc(of, func(k corev1.Container) bool { return k.Name == s.Name })
		return i >= 0 && s.Resources != nil && !as(of[i].Resources, &s)
	})
}

// resourcesOf returns the statuses without what is not about resources.
func resourcesOf(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, len(all))
	for i, s := range all {
		out[i] = corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources}
	}
	return out
}

// as reports whether the container has the resources that its spec asks for.
func as(asked corev1.ResourceRequirements, s *corev1.ContainerStatus) bool {
	equal := func(a, b corev1.ResourceList) bool { return maps.EqualFunc(a, b, resource.Quantity.Equal) }
	return equal(asked.Requests, s.Resources.Requests) && equal(asked.Limits, s.Resources.Limits) &&
		(len(s.AllocatedResources) == 0 || equal(asked.Requests, s.AllocatedResources))
}

// trimNode drops fields that nothing reads. Nodes can still be patched, because
// both sides of the patch are trimmed copies.
func trimNode(n *corev1.Node) {
	n.ManagedFields = nil
	n.Status.Images, n.Status.VolumesInUse, n.Status.VolumesAttached = nil, nil, nil
}

// trimClaim drops what only the CSI driver needs. It keeps the annotations,
// because they tell how far binding has come.
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

// TrimOthers trims objects of kinds that Trims does not list. Some of these
// kinds are not served by every API server, and a cache cannot be configured for
// a kind that is not served.
func TrimOthers(obj any) (any, error) {
	switch o := obj.(type) {
	case *resourcev1.ResourceSlice: // who owns it says which node it is of
		o.Labels, o.Annotations = nil, nil
	case *resourcev1.ResourceClaim:
		made, ok := o.Annotations[resourcev1.ExtendedResourceClaimAnnotation]
		if o.Labels, o.Annotations, o.Finalizers = nil, nil, nil; ok {
			o.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: made}
		}
		o.Spec.Devices.Config, o.Status.Devices = nil, nil
		if o.Status.Allocation != nil {
			o.Status.Allocation.Devices.Config = nil
		}
	case *resourcev1.DeviceClass:
		o.Labels, o.Annotations, o.Spec.Config = nil, nil, nil
	}
	return trimFields(obj)
}

// trimFields drops who wrote which field, and leaves the rest to others that
// read the kind.
func trimFields(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
