// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
	"karpenter/model"
)

// RestartedAtAnnotationKey in the pod template of a workload is what kubectl rollout
// restart sets.
const RestartedAtAnnotationKey = "kubectl.kubernetes.io/restartedAt"

// Surge configures how Deployments with one replica are drained if they opt in:
// a rollout restart starts the replacement, and the Deployment removes the old
// pod when the replacement is available.
//
// Nothing is kept in memory: the Deployment's own template says since when it has been
// restarting.
type Surge struct {
	// Live reads Deployments past the caches.
	Live client.Reader
	// Timeout is the time after the restart at which the pod is evicted even
	// without a replacement; 0 = pods are evicted at once.
	Timeout time.Duration
}

// surge starts the replacement of a pod that must not be evicted before the
// replacement is available. It returns why the pod stays, or "" if it must be
// evicted.
func (q *Queue) surge(ctx context.Context, pod *corev1.Pod) (string, error) {
	if q.Surge.Timeout <= 0 || pod.Annotations[v1.SurgeFirstAnnotationKey] != "true" || !pods.Ready(pod) {
		return "", nil
	}
	reason, err := q.reason(ctx, pod)
	if err != nil || !waitsForSurge(reason) {
		return "", err
	}
	d, err := q.deployment(ctx, pod)
	if err != nil || d == nil || !surges(d) {
		return "", err
	}
	now := q.clock.Now()
	at, err := time.Parse(time.RFC3339, d.Spec.Template.Annotations[RestartedAtAnnotationKey])
	if err != nil || !at.After(pod.CreationTimestamp.Time) {
		return q.restart(ctx, d, now)
	}
	if now.Sub(at) >= q.Surge.Timeout {
		return "", nil
	}
	return fmt.Sprintf("it waits until Deployment %s has replaced it, at most until %s", d.Name, at.Add(q.Surge.Timeout).UTC().Format(time.RFC3339)), nil
}

// waitsForSurge reports whether there is time for a replacement when a node is removed
// for the reason. There is none if its instance is interrupted or unhealthy.
func waitsForSurge(reason string) bool {
	switch reason {
	case string(model.Drifted), string(model.Underutilized), string(model.Empty), forcefulTermination, "":
		return true
	}
	return false
}

// deployment returns the Deployment that the pod is of, or nil.
func (q *Queue) deployment(ctx context.Context, pod *corev1.Pod) (*appsv1.Deployment, error) {
	name := pods.Deployment(pod)
	if name == "" {
		return nil, nil
	}
	d := &appsv1.Deployment{}
	switch err := q.Surge.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, d); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get deployment %s/%s: %w", pod.Namespace, name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) || d.DeletionTimestamp != nil {
		return nil, nil
	}
	return d, nil
}

// surges reports whether the Deployment has one replica, and a rollout makes the new
// pod before it removes the old one.
func surges(d *appsv1.Deployment) bool {
	if d.Spec.Paused || d.Spec.Replicas != nil && *d.Spec.Replicas != 1 || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	more, less := intstr.FromString("25%"), intstr.FromString("25%")
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		more, less = *cmp.Or(r.MaxSurge, &more), *cmp.Or(r.MaxUnavailable, &less)
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(&more, 1, true)
	if err != nil {
		return false
	}
	away, err := intstr.GetScaledValueFromIntOrPercent(&less, 1, false)
	return err == nil && surge > 0 && away == 0
}

// restart restarts the rollout of the Deployment. Without the right to do so the pod is
// evicted.
func (q *Queue) restart(ctx context.Context, d *appsv1.Deployment, now time.Time) (string, error) {
	was := d.DeepCopy()
	if d.Spec.Template.Annotations == nil {
		d.Spec.Template.Annotations = map[string]string{}
	}
	d.Spec.Template.Annotations[RestartedAtAnnotationKey] = now.UTC().Format(time.RFC3339)
	err := q.client.Patch(ctx, d, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err):
		return "", nil
	case apierrors.IsConflict(err):
		return fmt.Sprintf("Deployment %s is being changed", d.Name), nil
	case err != nil:
		return "", fmt.Errorf("restart deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return fmt.Sprintf("Deployment %s is restarted, so that its replacement starts first", d.Name), nil
}
