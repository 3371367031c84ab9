// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/kube/pods"
)

// ofDaemonSet reports whether a DaemonSet owns the pod, also one of OpenKruise or
// of another API group.
func ofDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// static reports whether a kubelet runs the pod from a file.
func static(p *corev1.Pod) bool {
	return pods.Static(p) || p.Annotations[corev1.MirrorPodAnnotationKey] != ""
}

// daemonSets returns what runs on every new node: the DaemonSets of the cluster, a
// stand-in for each one that the dump lacks but has pods of, and a stand-in for
// each static pod that every node of the comparison runs.
func (c *Cluster) daemonSets(on map[string]*node) []*appsv1.DaemonSet {
	type key struct{ namespace, name string }
	known, out := map[key]bool{}, slices.Clone(c.DaemonSets)
	for _, d := range c.DaemonSets {
		known[key{d.Namespace, d.Name}] = true
	}
	copies := map[key]int{}
	for _, p := range c.Pods {
		if on[p.Spec.NodeName] == nil || pods.Terminal(p) || pods.Terminating(p) {
			continue
		}
		var k key
		switch {
		case ofDaemonSet(p):
			k = key{p.Namespace, metav1.GetControllerOf(p).Name}
		case static(p):
			k = key{p.Namespace, strings.TrimSuffix(p.Name, "-"+p.Spec.NodeName)}
			if copies[k]++; copies[k] < len(on) {
				continue
			}
		default:
			continue
		}
		if !known[k] {
			known[k] = true
			out = append(out, standIn(p, k.name))
		}
	}
	return out
}

// standIn returns a DaemonSet whose pods are like the pod.
func standIn(p *corev1.Pod, name string) *appsv1.DaemonSet {
	out := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	out.Spec.Template.Labels = p.Labels
	spec := p.Spec.DeepCopy()
	spec.NodeName = ""
	if static(p) { // no taint keeps a kubelet from running it
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	// The controller of DaemonSets ties each pod to its node by name.
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for i := range required.NodeSelectorTerms {
			required.NodeSelectorTerms[i].MatchFields = nil
			if len(required.NodeSelectorTerms[i].MatchExpressions) == 0 { // nothing else is asked for
				a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
				break
			}
		}
	}
	out.Spec.Template.Spec = *spec
	return out
}
