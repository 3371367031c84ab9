// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

const (
	// period is the time between two reconciles of a claim without events.
	period = 5 * time.Minute
)

// Reconciler is the controller nodeclaim.disruption. The exported fields are
// required.
type Reconciler struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
	Labels   v1.Labels

	types typeMemory
}

// Register adds the controller to the manager. Pods need no watch, because
// status.lastPodEventTime of the claim records when they change.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	managed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.Manages(r.Provider, o.(*v1.NodeClaim).Spec.NodeClassRef)
	})
	b := builder.ControllerManagedBy(mgr).
		Named("nodeclaim.disruption").
		For(&v1.NodeClaim{}, builder.WithPredicates(managed)).
		WithOptions(options)
	if err := r.watch(b); err != nil {
		return err
	}
	return b.Complete(r)
}

// Reconcile brings both conditions of a claim up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.types.forget(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name := stored.Labels[v1.NodePoolLabelKey]
	if stored.DeletionTimestamp != nil || name == "" || !cloud.Manages(r.Provider, stored.Spec.NodeClassRef) {
		return reconcile.Result{}, nil
	}
	pool := &v1.NodePool{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	claim, now := stored.DeepCopy(), r.Clock.Now()
	driftErr := r.setDrifted(ctx, claim, pool, now)
	wait, err := setConsolidatable(claim, pool, now)
	err = errors.Join(driftErr, err, r.write(ctx, stored, claim))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{Requeue: true}, nil
	case err != nil:
		return reconcile.Result{}, err
	case wait == 0:
		return reconcile.Result{RequeueAfter: period}, nil
	}
	return reconcile.Result{RequeueAfter: min(wait, period)}, nil
}

// write writes the status of the claim over what was read, if it differs.
func (r *Reconciler) write(ctx context.Context, stored, claim *v1.NodeClaim) error {
	if equality.Semantic.DeepEqual(claim.Status, stored.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Status().Patch(ctx, claim, patch)); err != nil {
		return fmt.Errorf("patch status of node claim %s: %w", claim.Name, err)
	}
	return nil
}

// setDrifted sets or clears the condition Drifted.
func (r *Reconciler) setDrifted(ctx context.Context, claim *v1.NodeClaim, pool *v1.NodePool, now time.Time) error {
	if unreadable.Error(pool) != nil {
		return nil // the requirements of the pool are unknown
	}
	if !conditions.IsTrue(claim, v1.LaunchedCondition) {
		return unset(claim, v1.DriftedCondition, now)
	}
	reason, err := r.reason(ctx, claim, pool, now)
	switch {
	case cloud.IsNotFound(err):
		return nil // the instance is gone, and another controller handles that
	case err != nil:
		return fmt.Errorf("drift of node claim %s: %w", claim.Name, err)
	case reason == "":
		return unset(claim, v1.DriftedCondition, now)
	}
	if conditions.Get(claim, v1.DriftedCondition) == nil {
		log.FromContext(ctx).V(1).Info("node claim has drifted", "reason", reason)
	}
	claim.StatusConditions(now).SetTrueWithReason(v1.DriftedCondition, reason, reason)
	return nil
}

// reason returns why the claim has drifted, or "". It compares API objects
// before it asks the provider.
func (r *Reconciler) reason(ctx context.Context, claim *v1.NodeClaim, pool *v1.NodePool, now time.Time) (string, error) {
	if reason := outdated(claim, pool, r.Labels); reason != "" {
		return reason, nil
	}
	gone, err := r.typeGone(ctx, claim, pool, now)
	if err != nil {
		return "", err
	}
	if gone {
		return v1.InstanceTypeNotFoundReason, nil
	}
	return r.Provider.IsDrifted(ctx, claim)
}

// unset removes the condition if the claim has it.
func unset(claim *v1.NodeClaim, condition string, now time.Time) error {
	if conditions.Get(claim, condition) == nil {
		return nil
	}
	return claim.StatusConditions(now).Clear(condition)
}

func isInitialized(claim *v1.NodeClaim) (since metav1.Time, ok bool) {
	c := conditions.Get(claim, v1.InitializedCondition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return metav1.Time{}, false
	}
	return c.LastTransitionTime, true
}
