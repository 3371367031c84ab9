// SPDX-License-Identifier: Apache-2.0

// Package expiration deletes NodeClaims that have reached their age limit.
//
// The limit is copied to the claim when the claim is created. Expiration is
// forceful: it does not wait for budgets, pods or replacements. The drain that
// follows respects PodDisruptionBudgets and do-not-disrupt, within the claim's
// grace period.
package expiration

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/meter"
)

// Reconciler is the controller nodeclaim.expiration. All fields are required.
type Reconciler struct {
	Client      client.Client
	Provider    cloud.Provider
	Clock       clock.PassiveClock
	Disruptions *meter.Disruptions
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	// A claim's age limit never changes, so only its appearance matters.
	appearing := predicate.NewPredicateFuncs(func(o client.Object) bool {
		claim := o.(*v1.NodeClaim)
		return cloud.Manages(r.Provider, claim.Spec.NodeClassRef) && claim.Spec.ExpireAfter.Duration != nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.expiration").
		For(&v1.NodeClaim{}, builder.WithPredicates(appearing, predicate.GenerationChangedPredicate{})).
		WithOptions(options).
		Complete(r)
}

// Reconcile deletes the claim if it is old enough, or comes back when it is.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	limit := claim.Spec.ExpireAfter.Duration
	if !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) || !claim.DeletionTimestamp.IsZero() || limit == nil {
		return reconcile.Result{}, nil
	}
	if left := claim.CreationTimestamp.Add(*limit).Sub(r.Clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	// Deleting over what was read only keeps a claim from being counted twice
	// when the read does not show yet that it was deleted.
	uid, version := claim.UID, claim.ResourceVersion
	err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("deleted expired node claim", "expire-after", limit.String())
	r.Disruptions.Forced(ctx, claim, "expired")
	return reconcile.Result{}, nil
}
