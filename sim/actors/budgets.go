// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"karpenter/sim/store"
)

// forgotten is how long a pod that was evicted and is not ending yet counts as
// disrupted.
const forgotten = 2 * time.Minute

// countBudgets keeps the status of PodDisruptionBudgets, of those with
// maxUnavailable, for the Deployment of the same name.
func countBudgets(a *Actor, c *choice) {
	for b := range store.All[*policyv1.PodDisruptionBudget](a.Store) {
		if b.DeletionTimestamp != nil || b.Spec.MaxUnavailable == nil {
			continue
		}
		fresh := b.DeepCopy()
		fresh.Status = statusOf(a, b)
		if !equality.Semantic.DeepEqual(b.Status, fresh.Status) {
			c.offer(a.status(fresh))
		}
	}
}

func statusOf(a *Actor, b *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudgetStatus {
	out := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
	if d := store.Find[*appsv1.Deployment](a.Store, b.Namespace, b.Name); d != nil {
		out.ExpectedPods = *d.Spec.Replicas
	}
	for p := range store.All[*corev1.Pod](a.Store) {
		if p.Namespace != b.Namespace || !matches(b.Spec.Selector, p) || p.DeletionTimestamp != nil {
			continue
		}
		if at, ok := b.Status.DisruptedPods[p.Name]; ok && !a.due(at.Add(forgotten)) {
			if out.DisruptedPods == nil {
				out.DisruptedPods = map[string]metav1.Time{}
			}
			out.DisruptedPods[p.Name] = at
			continue
		}
		if podReady(p) {
			out.CurrentHealthy++
		}
	}
	away, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, int(out.ExpectedPods), true)
	if err != nil {
		away = 0
	}
	out.DesiredHealthy = max(out.ExpectedPods-int32(away), 0)
	if out.ExpectedPods > 0 {
		out.DisruptionsAllowed = max(out.CurrentHealthy-out.DesiredHealthy, 0)
	}
	return out
}
