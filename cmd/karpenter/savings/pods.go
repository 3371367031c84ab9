// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
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
	capacity(out, k)
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
	// Another model has another memory, and may not run the same program.
	if p.on.gpu != "" && p.demands("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi") {
		out.Spec.NodeSelector[awsv1.InstanceGPUNameLabelKey] = p.on.gpu
	}
	if p.on.accelerator != "" && p.demands("aws.amazon.com/neuron", "aws.amazon.com/neuroncore") {
		out.Spec.NodeSelector[awsv1.InstanceAcceleratorNameLabelKey] = p.on.accelerator
	}
	if k.spot && !p.mayUseSpot() {
		out.Spec.NodeSelector[v1.CapacityTypeLabelKey] = v1.CapacityTypeOnDemand
	}
	return out
}

// demands reports whether a container needs one of the resources.
func (p placed) demands(names ...corev1.ResourceName) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(names, func(name corev1.ResourceName) bool { return !c.Resources.Limits.Name(name, "").IsZero() })
	})
}

// assume gives containers without a request or limit of a resource the request in
// missing.
func assume(p *corev1.Pod, missing corev1.ResourceList) {
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		for name, q := range missing {
			if r.Requests.Name(name, "").IsZero() && r.Limits.Name(name, "").IsZero() {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = q
			}
		}
	}
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
		if n == nil || pods.Terminal(p) || pods.Terminating(p) || ofDaemonSet(p) || static(p) {
			continue
		}
		out = append(out, placed{p, n})
	}
	return out
}

// groupCapacity is the label by which node groups of EKS name the capacity type.
const groupCapacity = "eks.amazonaws.com/capacityType"

// capacityTypes are the values of groupCapacity in the words of Karpenter.
func capacityTypes(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = map[string]string{"SPOT": v1.CapacityTypeSpot, "ON_DEMAND": v1.CapacityTypeOnDemand}[v]
		if out[i] == "" {
			out[i] = v
		}
	}
	return out
}

// capacity puts what the pod demands of the capacity type into Karpenter's words. A
// plan without Spot is about what the pods would cost on demand, so there the demand
// is dropped.
func capacity(p *corev1.Pod, k kind) {
	if v, ok := p.Spec.NodeSelector[groupCapacity]; ok {
		delete(p.Spec.NodeSelector, groupCapacity)
		p.Spec.NodeSelector[v1.CapacityTypeLabelKey] = capacityTypes([]string{v})[0]
	}
	if !k.spot {
		delete(p.Spec.NodeSelector, v1.CapacityTypeLabelKey)
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		t := &terms[i]
		for j := range t.MatchExpressions {
			if e := &t.MatchExpressions[j]; e.Key == groupCapacity {
				e.Key, e.Values = v1.CapacityTypeLabelKey, capacityTypes(e.Values)
			}
		}
		if !k.spot {
			t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == v1.CapacityTypeLabelKey })
		}
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 { // nothing is left to ask for
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			return
		}
	}
}
