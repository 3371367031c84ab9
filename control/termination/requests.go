// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
)

const (
	// Requester is spec.requester of the EvictionRequests that a drain creates.
	Requester = v1.Group + "/node-drain"
	// unservedPause is how long EvictionRequests are not tried again after the
	// API server did not serve them.
	unservedPause = 5 * time.Minute
	// targetFailed is the condition of an EvictionRequest that no responder works on any more.
	targetFailed = "Failed"
)

// Requests configures draining by EvictionRequests: the responders that a pod
// names can then move its work before the pod ends, and Kubernetes evicts a pod
// that names none.
//
// Nothing is kept in memory: the name of an EvictionRequest contains the UID of its
// pod, and the EvictionRequest is deleted with the pod.
type Requests struct {
	// Live reads EvictionRequests past the caches; nil = pods are evicted by the
	// Eviction API.
	Live client.Reader
}

// unserved is since when the API server is known not to serve EvictionRequests.
type unserved struct {
	mu    sync.Mutex
	until time.Time
}

func (u *unserved) at(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.until)
}

func (u *unserved) since(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.until = now.Add(unservedPause)
}

// requestable reports whether the pod can be the target of an EvictionRequest.
// Pods of PodGroups cannot.
func (q *Queue) requestable(pod *corev1.Pod) bool {
	return q.Requests.Live != nil && pod.Spec.SchedulingGroup == nil && !q.unserved.at(q.clock.Now())
}

// RequestFor returns the EvictionRequest that asks for the eviction of the pod.
func RequestFor(pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: "karpenter-" + string(pod.UID),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: Requester,
			Intent:    lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
}

// request asks for the eviction of the pod by an EvictionRequest. It reports
// false if the pod must be evicted by the Eviction API: the API server does not
// serve EvictionRequests, does not allow this one, or no responder has evicted
// the pod.
func (q *Queue) request(ctx context.Context, pod *corev1.Pod) (bool, error) {
	reason, err := q.reason(ctx, pod)
	if err != nil {
		return false, err
	}
	stored, err := q.requestOf(ctx, pod)
	switch {
	case err != nil || q.unserved.at(q.clock.Now()):
		return false, err
	case stored == nil:
		return q.create(ctx, pod, reason)
	case stored.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentWithdrawn:
		if err := q.intend(ctx, stored, lifecyclev1alpha1.EvictionRequestIntentEviction); err != nil {
			return false, err
		}
		q.events.Publish(evictionRequested(pod, reason))
		return true, nil
	}
	observed := stored.Status.ObservedGeneration
	failed := meta.IsStatusConditionTrue(stored.Status.Conditions, targetFailed) && (observed == nil || *observed >= stored.Generation)
	return !failed, nil
}

// answered counts a pod that terminates because of its EvictionRequest.
func (q *Queue) answered(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	reason, err := q.reason(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	q.left(pod, reason)
	return q.drop(keyOf(pod)), nil
}

// create creates the EvictionRequest of the pod.
func (q *Queue) create(ctx context.Context, pod *corev1.Pod, reason string) (bool, error) {
	err := q.client.Create(ctx, RequestFor(pod))
	switch {
	case err == nil:
		q.events.Publish(evictionRequested(pod, reason))
		return true, nil
	case apierrors.IsAlreadyExists(err):
		return true, nil // the next attempt reads it
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return false, nil
	case q.missing(err):
		return false, nil
	}
	return false, fmt.Errorf("create eviction request of pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// requestOf returns the EvictionRequest that was created for the pod, or nil.
func (q *Queue) requestOf(ctx context.Context, pod *corev1.Pod) (*lifecyclev1alpha1.EvictionRequest, error) {
	out := &lifecyclev1alpha1.EvictionRequest{}
	err := q.Requests.Live.Get(ctx, client.ObjectKeyFromObject(RequestFor(pod)), out)
	switch {
	case err == nil:
		return out, nil
	case apierrors.IsForbidden(err), q.missing(err):
		return nil, nil
	}
	return nil, fmt.Errorf("get eviction request of pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// missing reports whether the object or its kind is not there. If it is the kind,
// EvictionRequests are not tried again for a while.
func (q *Queue) missing(err error) bool {
	if meta.IsNoMatchError(err) {
		q.unserved.since(q.clock.Now())
		return true
	}
	return apierrors.IsNotFound(err)
}

// intend changes the intent of the EvictionRequest.
func (q *Queue) intend(ctx context.Context, request *lifecyclev1alpha1.EvictionRequest, intent lifecyclev1alpha1.EvictionRequestIntent) error {
	stored := request.DeepCopy()
	request.Spec.Intent = intent
	if err := q.client.Patch(ctx, request, client.MergeFrom(stored)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set intent of eviction request %s/%s to %s: %w", request.Namespace, request.Name, intent, err)
	}
	return nil
}

// CallOff withdraws the EvictionRequests of pods that are still on the Node: the
// Node stays, or does not wait for them any longer. The pods leave the queue.
func (q *Queue) CallOff(ctx context.Context, node *corev1.Node) error {
	list := &corev1.PodList{}
	if err := q.client.List(ctx, list, client.MatchingFields{join.PodNodeName: node.Name}); err != nil {
		return fmt.Errorf("list pods of node %s: %w", node.Name, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		q.drop(keyOf(pod))
		if err := q.withdraw(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// withdraw withdraws the EvictionRequest of the pod, if there is one.
func (q *Queue) withdraw(ctx context.Context, pod *corev1.Pod) error {
	if !q.requestable(pod) {
		return nil
	}
	request, err := q.requestOf(ctx, pod)
	if err != nil || request == nil || request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction {
		return err
	}
	return q.intend(ctx, request, lifecyclev1alpha1.EvictionRequestIntentWithdrawn)
}
