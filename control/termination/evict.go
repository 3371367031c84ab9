// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/pods"
)

// severalBudgets is part of what the API server answers to the eviction of a
// pod that more than one PodDisruptionBudget selects.
const severalBudgets = "more than one PodDisruptionBudget"

// forcefulTermination stands for the reason of a claim that was deleted
// without one.
const forcefulTermination = "Forceful Termination"

// force deletes the pod with the remaining time as its grace period.
func (q *Queue) force(ctx context.Context, pod *corev1.Pod, deadline time.Time) (reconcile.Result, error) {
	reason, err := q.reason(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	grace := forcedGrace(deadline, q.clock.Now())
	err = q.client.Delete(ctx, pod.DeepCopy(),
		client.GracePeriodSeconds(int64(grace/time.Second)), client.Preconditions{UID: &pod.UID})
	if apierrors.IsNotFound(err) {
		return q.drop(keyOf(pod)), nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	q.events.Publish(disrupted(pod, deadline, grace))
	q.left(pod, reason)
	return q.drop(keyOf(pod)), nil
}

// left counts the pod and publishes its eviction.
func (q *Queue) left(pod *corev1.Pod, reason string) {
	q.metrics.podsDrained.WithLabelValues(reason).Inc()
	if q.Evicted != nil {
		q.Evicted(pod)
	}
}

// evict asks the API server to evict the pod, once.
func (q *Queue) evict(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	reason, err := q.reason(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = q.client.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	code := answer(err)
	if code != 0 {
		q.metrics.evictionRequests.WithLabelValues(strconv.Itoa(code)).Inc()
	}
	switch {
	case err == nil:
		q.events.Publish(evicted(pod, reason))
		q.left(pod, reason)
		return q.drop(keyOf(pod)), nil
	case code == http.StatusNotFound, code == http.StatusConflict:
		return q.drop(keyOf(pod)), nil
	case code == http.StatusTooManyRequests,
		code == http.StatusInternalServerError && strings.Contains(err.Error(), severalBudgets):
		why, err := q.refusal(ctx, pod, code)
		if err != nil {
			return reconcile.Result{}, err
		}
		return q.refused(ctx, pod, why)
	default:
		return reconcile.Result{}, fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
}

// answer returns the HTTP status of the response to an eviction, or 0 if there
// was no response.
func answer(err error) int {
	if err == nil {
		return http.StatusOK
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}

// refused publishes on the pod's Node why the pod stays, and tries again later.
func (q *Queue) refused(ctx context.Context, pod *corev1.Pod, why string) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := q.client.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node); err != nil {
		return reconcile.Result{}, fmt.Errorf("node of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	q.events.Publish(podStays(node, pod, why))
	return q.later(keyOf(pod)), nil
}

// refusal returns which PodDisruptionBudgets block the eviction, and whether
// waiting can help.
func (q *Queue) refusal(ctx context.Context, pod *corev1.Pod, code int) (string, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := q.client.List(ctx, list, client.InNamespace(pod.Namespace)); err != nil {
		return "", fmt.Errorf("list pod disruption budgets of %s: %w", pod.Namespace, err)
	}
	budgets, err := pods.BudgetsOf(pod, list.Items)
	if err != nil {
		return "", err
	}
	var names []string
	for _, b := range budgets {
		names = append(names, b.Namespace+"/"+b.Name)
	}
	// The budgets may not have reached the cache.
	switch {
	case code == http.StatusInternalServerError && len(names) > 1:
		return fmt.Sprintf("it has multiple PodDisruptionBudgets (%s), which evictions do not support", named(names)), nil
	case code == http.StatusInternalServerError:
		return "it has multiple PodDisruptionBudgets, which evictions do not support", nil
	case len(names) == 0:
		return "evicting it violates its PodDisruptionBudget", nil
	}
	why := "evicting it violates PodDisruptionBudget " + names[0]
	if deadlock := pods.Deadlock(budgets[0]); deadlock != "" {
		why += fmt.Sprintf(", which never allows an eviction (%s)", deadlock)
	}
	return why, nil
}

// reason returns why the pod's node is removed: the disruption reason of its
// claim, forcefulTermination if the claim has none, or "" without a claim.
func (q *Queue) reason(ctx context.Context, pod *corev1.Pod) (string, error) {
	node := &corev1.Node{}
	if err := q.client.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	claim, err := join.ClaimOf(ctx, q.client, node)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c := conditions.Get(claim, v1.DisruptionReasonCondition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return forcefulTermination, nil
	}
	return c.Reason, nil
}
