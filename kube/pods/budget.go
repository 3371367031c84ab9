// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// BudgetsOf returns those of the budgets that select the pod, in their order.
func BudgetsOf(p *corev1.Pod, budgets []policyv1.PodDisruptionBudget) ([]*policyv1.PodDisruptionBudget, error) {
	var out []*policyv1.PodDisruptionBudget
	for i := range budgets {
		b := &budgets[i]
		if b.Namespace != p.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("selector of pod disruption budget %s/%s: %w", b.Namespace, b.Name, err)
		}
		if selector.Matches(labels.Set(p.Labels)) {
			out = append(out, b)
		}
	}
	return out, nil
}

// Never returns why the budget allows no voluntary disruption even if all of
// its pods are healthy, in the words of its spec, or "".
func Never(b *policyv1.PodDisruptionBudget) string {
	is := func(v *intstr.IntOrString, texts ...string) bool {
		if v == nil {
			return false
		}
		for _, t := range texts {
			if v.String() == t {
				return true
			}
		}
		return false
	}
	switch {
	case is(b.Spec.MaxUnavailable, "0", "0%"):
		return "maxUnavailable: " + b.Spec.MaxUnavailable.String()
	case is(b.Spec.MinAvailable, "100%"):
		return "minAvailable: 100%"
	}
	return ""
}

// Deadlock returns why the budget allows no voluntary disruption even if all of
// its pods are healthy, for as long as the budget and its number of pods stay
// the same, or "". It includes the cases of Never.
func Deadlock(b *policyv1.PodDisruptionBudget) string {
	if never := Never(b); never != "" {
		return never
	}
	if b.Status.ObservedGeneration < b.Generation {
		return ""
	}
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason {
			return "its pods cannot be counted: " + c.Message
		}
	}
	if b.Spec.MinAvailable != nil && b.Status.ExpectedPods > 0 && b.Status.DesiredHealthy >= b.Status.ExpectedPods {
		return fmt.Sprintf("minAvailable: %s, of %d pods", b.Spec.MinAvailable, b.Status.ExpectedPods)
	}
	return ""
}

// Exempt reports whether the budget permits the eviction of the pod because the
// pod is not ready.
func Exempt(p *corev1.Pod, b *policyv1.PodDisruptionBudget) bool {
	if b.Spec.UnhealthyPodEvictionPolicy == nil || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionFalse
		}
	}
	return false
}
