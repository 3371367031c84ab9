// SPDX-License-Identifier: Apache-2.0

// Package podevents records in status.lastPodEventTime of a NodeClaim when a
// pod was last added to, removed from or resized on its node. Consolidation
// leaves a node alone until it has been quiet for a while.
package podevents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/pods"
)

// every is the minimum time between two writes to a claim. It is shorter than
// the confirmation delay of a disruption, so that the confirmation sees recent
// events.
const every = 10 * time.Second

// Reconciler is the controller nodeclaim.podevents. It is keyed by node name,
// so that the pods of one node are one piece of work. All fields are required.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Managed reports whether the claim's node class is one of the provider's.
	Managed func(*v1.NodeClaim) bool
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.podevents").
		Watches(&corev1.Pod{}, noting(), builder.WithPredicates(filter())).
		WithOptions(options).
		Complete(r)
}

// existed is the namespace of requests about pods that existed when this
// process started.
const existed = "existed"

// noting enqueues the node of the pod.
func noting() handler.EventHandler {
	ask := func(o client.Object, namespace string, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: o.(*corev1.Pod).Spec.NodeName}})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.IsInInitialList {
				ask(e.Object, existed, queue)
				return
			}
			ask(e.Object, "", queue)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			ask(e.ObjectNew, "", queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			ask(e.Object, "", queue)
		},
	}
}

// filter passes events after which a pod that is bound and does not belong to a
// DaemonSet appears, starts to terminate, ends, or is deleted, and those with
// which its resizing in place begins or ends.
func filter() predicate.Predicate {
	counts := func(o client.Object) bool {
		p := o.(*corev1.Pod)
		return p.Spec.NodeName != "" && !pods.DaemonSet(p)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return counts(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return counts(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, p := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
			bound := old.Spec.NodeName == ""
			ended := !pods.Terminal(old) && pods.Terminal(p)
			ending := !pods.Terminating(old) && pods.Terminating(p)
			resized := pods.Resizing(old) != pods.Resizing(p)
			return counts(p) && (bound || ended || ending || resized)
		},
	}
}

// Reconcile records an event on a node. A pod that existed at the start counts
// only if it was bound while no process was watching. So a restart does not
// write to the claims of all nodes, and does not delay consolidation.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: req.Name}, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	stored, err := join.ClaimOf(ctx, r.Client, node)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	if !r.Managed(stored) || now.Sub(stored.Status.LastPodEventTime.Time) < every {
		return reconcile.Result{}, nil
	}
	if req.Namespace == existed {
		if news, err := r.missed(ctx, node.Name, stored.Status.LastPodEventTime.Time); err != nil || !news {
			return reconcile.Result{}, err
		}
	}
	claim := stored.DeepCopy()
	claim.Status.LastPodEventTime = metav1.NewTime(now)
	if err := r.Client.Status().Patch(ctx, claim, client.MergeFrom(stored)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("patch status of node claim %s: %w", claim.Name, err)
	}
	return reconcile.Result{}, nil
}

// missed reports whether a pod was bound to the node after the last recorded
// event, and too late to have been skipped because of the rate limit.
func (r *Reconciler) missed(ctx context.Context, node string, noted time.Time) (bool, error) {
	if noted.IsZero() {
		return true, nil
	}
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{join.PodNodeName: node}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list pods of node %s: %w", node, err)
	}
	return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
		return !pods.DaemonSet(&p) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.Sub(noted) >= every
		})
	}), nil
}
