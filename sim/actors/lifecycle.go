// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/sim/store"
)

const (
	silence    = 40 * time.Second // until a kubelet that does not report is abandoned
	toleration = 5 * time.Minute  // until pods on such a Node are deleted
)

// lifecycle is the part of the controller manager that tends Nodes.
type lifecycle struct {
	lost map[string]time.Time // by provider ID: when the instance was first missed
}

func newLifecycle() *lifecycle { return &lifecycle{map[string]time.Time{}} }

func (l *lifecycle) look(a *Actor, c *choice) {
	runs := map[string]bool{}
	for _, m := range a.machines() {
		runs[m.ProviderID] = true
	}
	unreachable := map[string]time.Time{} // nodes, and since when
	for n := range store.All[*corev1.Node](a.Store) {
		if !runs[n.Spec.ProviderID] {
			if l.miss(a, c, n) {
				unreachable[n.Name] = l.lost[n.Spec.ProviderID].Add(silence)
			}
			continue
		}
		if taints := withoutKeys(n.Spec.Taints, corev1.TaintNodeNotReady); isReady(n) && len(taints) != len(n.Spec.Taints) {
			fresh := n.DeepCopy()
			fresh.Spec.Taints = taints
			c.offer(a.update(fresh))
		}
		if !wellAt(n).IsZero() && len(withoutKeys(n.Spec.Taints, corev1.TaintNodeNotReady)) == len(n.Spec.Taints) {
			fresh := n.DeepCopy()
			fresh.Spec.Taints = append(fresh.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
			c.offer(a.update(fresh))
		}
	}
	for p := range store.All[*corev1.Pod](a.Store) {
		if since, ok := unreachable[p.Spec.NodeName]; ok && !ended(p) {
			strand(a, c, p, since)
		}
	}
}

// miss brings the Node of an instance that is gone up to date, and reports
// whether it has been abandoned.
func (l *lifecycle) miss(a *Actor, c *choice, n *corev1.Node) bool {
	since, ok := l.lost[n.Spec.ProviderID]
	if !ok {
		since = a.now
		l.lost[n.Spec.ProviderID] = since
	}
	if !a.due(since.Add(silence)) {
		return false
	}
	if readiness(n) != corev1.ConditionUnknown {
		c.offer(a.status(withReady(n, corev1.ConditionUnknown, a.now)))
		return true
	}
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable }) {
		fresh := n.DeepCopy()
		at := metav1.NewTime(a.now.Truncate(time.Second))
		fresh.Spec.Taints = append(fresh.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at})
		c.offer(a.update(fresh))
	}
	return true
}

// strand marks the pod of a Node that was abandoned, and later deletes it.
// No one is there to end it.
func strand(a *Actor, c *choice, p *corev1.Pod, since time.Time) {
	if podReady(p) {
		out := p.DeepCopy()
		setPodReady(out, corev1.ConditionFalse, metav1.NewTime(a.now.Truncate(time.Second)))
		c.offer(a.status(out))
		return
	}
	daemon := false
	if owner := metav1.GetControllerOf(p); owner != nil {
		daemon = owner.Kind == "DaemonSet"
	}
	if p.DeletionTimestamp == nil && !daemon && a.due(since.Add(toleration)) {
		c.offer(a.remove(p))
	}
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func withoutKeys(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
