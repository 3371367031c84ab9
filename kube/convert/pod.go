// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
	"karpenter/model"
	"karpenter/world"
)

// Pod returns the pod as the world knows it.
func (c Converter) Pod(p *corev1.Pod) world.Pod {
	s, unknown, mounted, claimed := c.shape(p)
	protection := protection(p)
	out := world.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID),
		Created: p.CreationTimestamp.Time, Labels: labelled(p.Labels, mounted),
		Shape: s, Unknown: unknown, Claims: strings.Join(mounted.Claims, ", "), Workload: workload(p), Group: c.podGroup(p), Class: class(p), Node: p.Spec.NodeName, Nominated: pods.Nominated(p), DaemonSet: daemonSet(p),
		Pending:  asksForNode(p) && !claimed.Waits && !c.optedOut(s),
		Terminal: pods.Terminal(p), Terminating: pods.Terminating(p), Ends: ends(p),
		Daemon: pods.DaemonSet(p), Static: pods.Static(p),
		Reschedulable: pods.Reschedulable(p),
		Resizing:      pods.Resizing(p),
		Unready:       unready(p), Stays: pods.ToleratesDisrupted(p),
		EvictionCost: EvictionCost(p, c.DeletionCosts), Startup: startup(p),
	}
	if out.Nominated == "" && pods.Active(p) && !pods.DaemonSet(p) && !pods.Static(p) {
		out.Awaits = p.Status.NominatedNodeName
	}
	if claimed.Binds {
		out.Binding = p.Status.NominatedNodeName
	}
	if out.DaemonSet != "" {
		out.Devices = claimed.Claims
	}
	switch protection.Kind {
	case pods.ProtectedForever:
		out.Protected = true
	case pods.ProtectedUntil, pods.ProtectionElapsed:
		out.Protected, out.ProtectedUntil = true, protection.Until
	}
	return out
}

// ends returns the latest time at which the pod terminates, or the zero time if
// it is not terminating.
func ends(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	return p.DeletionTimestamp.Time
}

// startup returns the time from binding to readiness of the pod. It is 0 if the
// pod is no longer ready, because the conditions have lost the time then.
func startup(p *corev1.Pod) time.Duration {
	bound, ready := conditionSince(p, corev1.PodScheduled), conditionSince(p, corev1.PodReady)
	if bound.IsZero() || ready.IsZero() {
		return 0
	}
	return min(max(ready.Sub(bound), 0), mostStartup)
}

// mostStartup is the longest startup that counts. If a pod took longer to
// become ready, something else delayed it.
const mostStartup = 30 * time.Minute

// conditionSince returns since when the condition is true; zero when it is not.
func conditionSince(p *corev1.Pod, kind corev1.PodConditionType) time.Time {
	for _, k := range p.Status.Conditions {
		if k.Type == kind && k.Status == corev1.ConditionTrue {
			return k.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// workload returns the name of what controls the pod. Of a ReplicaSet of a Deployment
// it is that of the Deployment, and of a Job of a CronJob that of the CronJob: their
// names begin with it.
func workload(p *corev1.Pod) string {
	o := metav1.GetControllerOfNoCopy(p)
	switch {
	case o == nil || o.Kind == "DaemonSet" || o.Kind == "Node":
		return ""
	case o.Kind == "ReplicaSet":
		return pods.Deployment(p)
	case o.Kind == "Job":
		if at := strings.LastIndexByte(o.Name, '-'); at > 0 && len(o.Name)-at > 8 && strings.Trim(o.Name[at+1:], "0123456789") == "" {
			return o.Name[:at] // and minutes since 1970
		}
	}
	return o.Name
}

// class returns the class of a pod that runs to completion: the CronJob of its
// Job, or else the kind of its controller. Other pods have no class.
func class(p *corev1.Pod) string {
	o := metav1.GetControllerOfNoCopy(p)
	if o == nil {
		return "Pod"
	}
	switch o.Kind {
	case "Job":
		if of := workload(p); of != o.Name {
			return "CronJob/" + of
		}
		return o.Kind
	case "Workflow", "TaskRun", "EphemeralRunner": // of Argo, Tekton and GitHub Actions
		return o.Kind
	}
	return ""
}

// daemonSet returns the DaemonSet that controls the pod, or "".
func daemonSet(p *corev1.Pod) string {
	o := metav1.GetControllerOf(p)
	if o == nil || o.APIVersion != "apps/v1" || o.Kind != "DaemonSet" {
		return ""
	}
	return p.Namespace + "/" + o.Name
}

// protection reads the annotation independent of the current time. A protection
// that has elapsed carries the time at which it ended.
func protection(p *corev1.Pod) pods.Protection { return pods.ProtectionOf(p, p.CreationTimestamp.Time) }

// asksForNode reports whether the scheduler has found no node for the pod, so
// that a node should be launched. DaemonSet and static pods come with their
// node.
func asksForNode(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && !pods.DaemonSet(p) && !pods.Static(p) &&
		slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool {
			return k.Type == corev1.PodScheduled && k.Reason == corev1.PodReasonUnschedulable
		})
}

func unready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool {
		return k.Type == corev1.PodReady && k.Status == corev1.ConditionFalse
	})
}

// EvictionCost returns how much it costs to move the pod: 1 for an ordinary
// pod, and between -10 and 10. The largest disruption cost adds about 16, and
// the largest priority about 64, before the result is limited. The pod's
// deletion cost stands for a disruption cost that is missing, unless Karpenter
// writes deletion costs itself.
func EvictionCost(p *corev1.Pod, written bool) float64 {
	text, ok := p.Annotations[v1.DisruptionCostAnnotationKey]
	if !ok && !written {
		text = p.Annotations[corev1.PodDeletionCost]
	}
	cost := 1.0
	if v, err := strconv.ParseInt(text, 10, 32); err == nil {
		cost += float64(v) / (1 << 27)
	}
	if p.Spec.Priority != nil {
		cost += float64(*p.Spec.Priority) / (1 << 25)
	}
	return min(max(cost, -10), 10)
}

// Daemon returns the pod that the DaemonSet runs on a node, and false if no
// capacity is reserved for it. Volumes, topology spread, pod affinity and
// preferences of a daemon use no capacity, so none of them is rejected.
func (c Converter) Daemon(d *appsv1.DaemonSet) (world.Daemon, bool) {
	pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
	if hasDeviceClaims(pod) && c.Devices == nil {
		return world.Daemon{}, false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	if pod.Spec.HostNetwork {
		takeHostPorts(&pod.Spec)
	}
	s, unknown := c.demand(pod)
	s.Tolerations = append(s.Tolerations, daemonTolerations()...)
	s.Key = c.identity(s, unknown)
	return world.Daemon{Name: d.Namespace + "/" + d.Name, Shape: s, Unknown: unknown, Claims: mayClaimDevices(pod)}, true
}

// mayClaimDevices reports whether the pod names claims, or resources that a DeviceClass may
// serve.
func mayClaimDevices(p *corev1.Pod) bool {
	extended := func(r corev1.ResourceList) bool {
		for name := range r {
			if strings.Contains(string(name), "/") {
				return true
			}
		}
		return false
	}
	return hasDeviceClaims(p) || slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool { return extended(c.Resources.Requests) })
}

// requestLimits adds the requests the API server would add to a pod: where
// there is only a limit, that much is requested.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = q
		}
	}
}

// takeHostPorts does what the API server does to a pod on the host's network,
// and not to the template it is made from.
func takeHostPorts(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, k := range containers {
			for i := range k.Ports {
				k.Ports[i].HostPort = cmp.Or(k.Ports[i].HostPort, k.Ports[i].ContainerPort)
			}
		}
	}
}

// daemonTolerations returns what the DaemonSet controller adds to every pod.
func daemonTolerations() []model.Toleration {
	var out []model.Toleration
	for _, t := range []struct{ key, effect string }{
		{corev1.TaintNodeNotReady, "NoExecute"}, {corev1.TaintNodeUnreachable, "NoExecute"},
		{corev1.TaintNodeDiskPressure, "NoSchedule"}, {corev1.TaintNodeMemoryPressure, "NoSchedule"},
		{corev1.TaintNodePIDPressure, "NoSchedule"}, {corev1.TaintNodeUnschedulable, "NoSchedule"},
	} {
		out = append(out, model.Toleration{Key: t.key, Exists: true, Effect: model.Effect(t.effect)})
	}
	return out
}

// DisruptionBudget returns the budget as the world knows it. One whose
// selector cannot be read selects nothing.
func (c Converter) DisruptionBudget(b *policyv1.PodDisruptionBudget) world.DisruptionBudget {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	return world.DisruptionBudget{
		Namespace: b.Namespace, Name: b.Name,
		Selector:      selectorText(b.Spec.Selector, selector),
		Selects:       func(l map[string]string) bool { return selector.Matches(labels.Set(l)) },
		Allowed:       int(b.Status.DisruptionsAllowed),
		Never:         pods.Never(b) != "",
		UnreadyExempt: b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
	}
}

// selectorText returns the text of a selector, with different texts for one
// that selects everything and one that selects nothing. Both print as an empty
// string otherwise.
func selectorText(spec *metav1.LabelSelector, s labels.Selector) string {
	if spec == nil || !selectable(s) {
		return "nothing"
	}
	return "selector " + s.String()
}

func selectable(s labels.Selector) bool { _, ok := s.Requirements(); return ok }

// canonicalLabels returns the labels with aliases of keys and values replaced,
// so that labels of nodes can be compared with selectors of pods. If there is
// nothing to replace, it returns the map of the object itself, because objects
// in a cache are never modified.
func (c Converter) canonicalLabels(in map[string]string) map[string]string {
	out, own := in, false
	for key, value := range in {
		canonicalKey, canonicalValue := c.Labels.Canonical(key, value)
		if canonicalKey == key && canonicalValue == value {
			continue
		}
		if _, ok := out[canonicalKey]; ok && canonicalKey != key {
			continue
		}
		if !own {
			out, own = maps.Clone(in), true
		}
		out[canonicalKey] = canonicalValue
	}
	return out
}
