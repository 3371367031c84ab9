// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
)

// Rollout is the controller nodepool.rollout. It reports on a NodePool how many
// of its nodes match it, and halts replacements by instances of the pool while
// such instances do not become nodes. The exported fields are required.
type Rollout struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
	Labels   v1.Labels
	Recorder events.Recorder
	Metrics  *Metrics

	failures failures
}

// Reconcile brings both conditions of a pool up to date.
func (r *Rollout) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &v1.NodePool{}
	if err := r.Client.Get(ctx, request.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.failures.forget(request.Name)
			r.Metrics.forget(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !cloud.Manages(r.Provider, stored.Spec.Template.Spec.NodeClassRef) || unreadable.Error(stored) != nil {
		return reconcile.Result{}, nil
	}
	claims := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingLabels{v1.NodePoolLabelKey: stored.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list node claims of node pool %s: %w", stored.Name, err)
	}
	pool, now := stored.DeepCopy(), r.Clock.Now()
	hash := pool.Hash()
	t := count(claims.Items, hashed(pool, hash), r.Labels, now)
	t.joined = later(t.joined, editedAt(pool)) // earlier failures do not count, as after a success
	halted, again := halt(pool, t, troubleOf(pool, t, r.failures.after(pool.Name, hash, t.joined)), now)
	set := pool.StatusConditions(now)
	set.Set(rolledOut(t, halted))
	if halted == nil {
		if err := set.Clear(v1.RolloutHaltedCondition); err != nil {
			return reconcile.Result{}, err
		}
	} else {
		set.Set(*halted)
	}
	if err := r.write(ctx, stored, pool); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{Requeue: true}, nil
		}
		return reconcile.Result{}, err
	}
	r.tell(ctx, stored, pool, t)
	return reconcile.Result{RequeueAfter: again}, nil
}

// hashed returns the pool with its current hash, because its annotations may
// not have the hash yet.
func hashed(pool *v1.NodePool, hash string) *v1.NodePool {
	out := *pool
	out.Annotations = maps.Clone(pool.Annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[v1.NodePoolHashAnnotationKey] = hash
	out.Annotations[v1.NodePoolHashVersionAnnotationKey] = v1.NodePoolHashVersion
	return &out
}

// rolledOut returns the condition RolledOut.
func rolledOut(t tally, halted *metav1.Condition) metav1.Condition {
	if t.left == 0 {
		return metav1.Condition{Type: v1.RolledOutCondition, Status: metav1.ConditionTrue, Reason: v1.RolledOutCondition}
	}
	out := metav1.Condition{
		Type: v1.RolledOutCondition, Status: metav1.ConditionFalse, Reason: v1.RollingOutReason,
		Message: fmt.Sprintf("%d of %d nodes no longer match the node pool, %d of them being removed", t.left, t.all, t.leaving),
	}
	if halted != nil {
		out.Reason = v1.RolloutHaltedCondition
	}
	return out
}

func (r *Rollout) write(ctx context.Context, stored, pool *v1.NodePool) error {
	if equality.Semantic.DeepEqual(stored.Status, pool.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Status().Patch(ctx, pool, patch)); err != nil {
		return fmt.Errorf("patch status of node pool %s: %w", pool.Name, err)
	}
	return nil
}

// tell publishes events about the changes between before and after.
func (r *Rollout) tell(ctx context.Context, before, after *v1.NodePool, t tally) {
	old, halted := conditions.Get(before, v1.RolloutHaltedCondition), conditions.Get(after, v1.RolloutHaltedCondition)
	r.Metrics.show(after.Name, t, halted != nil)
	l := log.FromContext(ctx).WithValues("left", t.left, "nodes", t.all)
	switch {
	case old == nil && halted != nil:
		l.Info("halted the replacement of nodes by this node pool", "reason", halted.Message)
		r.Recorder.Publish(events.Event{
			Object: after, Type: corev1.EventTypeWarning, Reason: "RolloutHalted",
			Message: "Replacing nodes is halted: " + halted.Message, Timeout: time.Minute,
		})
	case old != nil && halted == nil:
		l.Info("resumed the replacement of nodes by this node pool")
		r.Recorder.Publish(events.Event{
			Object: after, Type: corev1.EventTypeNormal, Reason: "RolloutResumed",
			Message: "Replacing nodes continues: its instances become nodes again, or the NodePool was edited", Timeout: time.Minute,
		})
	}
}
