// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// evict deletes the pod if its PodDisruptionBudget allows, and takes that from
// the budget, as the API server does.
func (s *Store) evict(by string, o client.Object, e *policyv1.Eviction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, old, err := s.stored(o)
	if err != nil {
		return err
	}
	pod, ok := old.(*corev1.Pod)
	if !ok {
		return apierrors.NewMethodNotSupported(c.plural, "eviction")
	}
	options := e.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := preconditions(c.resource, old, options.Preconditions); err != nil {
		return err
	}
	if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
		budgets, err := s.budgetsOf(pod)
		if err != nil {
			return err
		}
		if len(budgets) > 1 {
			return apierrors.NewInternalError(fmt.Errorf("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
		}
		if len(budgets) == 1 {
			if err := s.spend(by, budgets[0], pod); err != nil {
				return err
			}
		}
	}
	s.end(writing{c, by, "evict"}, old, options.GracePeriodSeconds)
	return nil
}

func (s *Store) budgetsOf(pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	var out []*policyv1.PodDisruptionBudget
	for _, o := range s.kinds[policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")].list() {
		budget := o.(*policyv1.PodDisruptionBudget)
		if budget.Namespace != pod.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, budget)
		}
	}
	return out, nil
}

// spend takes one disruption from the budget, or refuses to.
func (s *Store) spend(by string, budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) error {
	healthy := isReady(pod)
	always := budget.Spec.UnhealthyPodEvictionPolicy != nil && *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	enough := budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
	switch {
	case !healthy && (always || enough):
		return nil
	case budget.Status.ObservedGeneration < budget.Generation:
		return tooManyRequests(fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name))
	case budget.Status.DisruptionsAllowed <= 0:
		return tooManyRequests(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy))
	}
	next := budget.DeepCopy()
	next.Status.DisruptionsAllowed--
	if next.Status.DisruptedPods == nil {
		next.Status.DisruptedPods = map[string]metav1.Time{}
	}
	next.Status.DisruptedPods[pod.Name] = *now()
	s.put(writing{s.kinds[policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")], by, "evict"}, budget, next)
	return nil
}

func tooManyRequests(why string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: why})
	err.ErrStatus.Code = http.StatusTooManyRequests
	return err
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// bind puts the pod on a node. The API server takes a nomination back with it.
func (s *Store) bind(by string, o client.Object, b *corev1.Binding) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, old, err := s.stored(o)
	if err != nil {
		return err
	}
	pod, ok := old.(*corev1.Pod)
	switch {
	case !ok:
		return apierrors.NewMethodNotSupported(c.plural, "binding")
	case pod.DeletionTimestamp != nil:
		return apierrors.NewConflict(c.plural, pod.Name, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return apierrors.NewConflict(c.plural, pod.Name, fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	next := pod.DeepCopy()
	next.Spec.NodeName = b.Target.Name
	next.Status.NominatedNodeName = ""
	next.Status.Conditions = scheduled(next.Status.Conditions)
	disown(next, pod)
	s.put(writing{c, by, "bind"}, old, next)
	return nil
}

// scheduled returns the conditions with PodScheduled true.
func scheduled(conditions []corev1.PodCondition) []corev1.PodCondition {
	is := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: *now()}
	for i := range conditions {
		if conditions[i].Type == corev1.PodScheduled {
			if conditions[i].Status != corev1.ConditionTrue {
				conditions[i] = is
			}
			return conditions
		}
	}
	return append(conditions, is)
}
