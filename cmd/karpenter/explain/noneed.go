// SPDX-License-Identifier: Apache-2.0

package explain

import corev1 "k8s.io/api/core/v1"

// OfOther returns the answer about a pod that is not among those that ask for a
// node.
func OfOther(p *corev1.Pod) Answer {
	return Answer{Pod: p.Namespace + "/" + p.Name, Outcome: NoNeed, Reason: noNeed(p)}
}

// noNeed says why the pod does not ask for a node.
func noNeed(p *corev1.Pod) string {
	switch {
	case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		return "it has finished (" + string(p.Status.Phase) + ")"
	case p.DeletionTimestamp != nil:
		return "it is being deleted"
	case p.Spec.NodeName != "":
		return "it is bound to node " + p.Spec.NodeName
	case len(p.Spec.SchedulingGates) > 0:
		return "scheduling gate " + p.Spec.SchedulingGates[0].Name + " holds it back"
	case p.Status.NominatedNodeName != "":
		return "kube-scheduler reserves capacity for it on node " + p.Status.NominatedNodeName
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return "Karpenter leaves it to others: it belongs to a DaemonSet, is a static pod, or opted out"
		}
	}
	return "kube-scheduler has not reported it as unschedulable yet"
}
