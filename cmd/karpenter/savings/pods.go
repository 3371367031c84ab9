package savings

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

// placed is a pod that runs on a node of the comparison.
type placed struct {
	*corev1.Pod
	on *node
}

// volumes reports whether the pod has persistent volumes.
func (p placed) volumes() bool {
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

// protected reports whether an annotation keeps the pod from being evicted.
func (p placed) protected() bool {
	return p.Annotations[v1.DoNotDisruptAnnotationKey] == "true" || p.Annotations["karpenter.sh/do-not-evict"] == "true" ||
		p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
}

// mayUseSpot reports whether the pod survives that its instance is reclaimed.
func (p placed) mayUseSpot() bool {
	if p.on.spot {
		return true
	}
	owner := metav1.GetControllerOf(p.Pod)
	return owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "Job") && !p.volumes() && !p.protected()
}

// waiting returns the pod as it would be if it waited for a node of the kind of
// plan.
func (p placed) waiting(k kind) *corev1.Pod {
	out := p.DeepCopy()
	out.Spec.NodeName, out.Status.NominatedNodeName = "", ""
	out.DeletionTimestamp = nil
	out.Status.Phase = corev1.PodPending
	out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if out.Spec.NodeSelector == nil {
		out.Spec.NodeSelector = map[string]string{}
	}
	if p.volumes() && p.on.zone != "" {
		out.Spec.NodeSelector[corev1.LabelTopologyZone] = p.on.zone
	}
	var rest []corev1.Volume
	for _, v := range out.Spec.Volumes {
		if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			rest = append(rest, v)
		}
	}
	out.Spec.Volumes = rest
	if !k.arm || p.on.arch != v1.ArchitectureAmd64 {
		out.Spec.NodeSelector[corev1.LabelArchStable] = p.on.arch
	}
	if k.spot && !p.mayUseSpot() {
		out.Spec.NodeSelector[v1.CapacityTypeLabelKey] = v1.CapacityTypeOnDemand
	}
	return out
}

// requests reports whether every container says how much CPU and memory it needs.
func (p placed) requests() bool {
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if r.Requests.Name(name, "").IsZero() && r.Limits.Name(name, "").IsZero() {
				return false
			}
		}
	}
	return true
}

// running returns the pods that need a place on nodes of the comparison.
func running(all []*corev1.Pod, on map[string]*node) []placed {
	var out []placed
	for _, p := range all {
		n := on[p.Spec.NodeName]
		if n == nil || pods.Terminal(p) || pods.Terminating(p) || pods.DaemonSet(p) || pods.Static(p) || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			continue
		}
		out = append(out, placed{p, n})
	}
	return out
}
