package disruption

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
)

// Consolidatable is the controller nodeclaim.disruption. All fields are
// required.
type Consolidatable struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Managed reports whether the claim's node class is one of the provider's.
	Managed func(*v1.NodeClaim) bool
}

// Register adds the controller to the manager.
func (r *Consolidatable) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.disruption").
		For(&v1.NodeClaim{}).
		Watches(&v1.NodePool{}, handler.EnqueueRequestsFromMapFunc(r.claimsOf)).
		WithOptions(options).
		Complete(r)
}

// claimsOf returns the claims of a pool.
func (r *Consolidatable) claimsOf(ctx context.Context, pool client.Object) []reconcile.Request {
	claims := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingLabels{v1.NodePoolLabelKey: pool.GetName()}); err != nil {
		return nil
	}
	var out []reconcile.Request
	for _, c := range claims.Items {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: c.Name}})
	}
	return out
}

// Reconcile brings the condition of a claim up to date.
func (r *Consolidatable) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	stored := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, req.NamespacedName, stored); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name := stored.Labels[v1.NodePoolLabelKey]
	if stored.DeletionTimestamp != nil || name == "" || !r.Managed(stored) {
		return reconcile.Result{}, nil
	}
	pool := &v1.NodePool{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, pool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if pool.IsStatic() {
		return reconcile.Result{}, nil
	}
	claim, now := stored.DeepCopy(), r.Clock.Now()
	wait, err := set(claim, pool, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if equality.Semantic.DeepEqual(claim.Status, stored.Status) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err = r.Client.Status().Patch(ctx, claim, locked(stored))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: againPoll}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("patch status of node claim %s: %w", claim.Name, err)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// set sets or clears the condition. It returns how long it is until the
// condition can come true by time alone, 0 for never.
func set(claim *v1.NodeClaim, pool *v1.NodePool, now time.Time) (time.Duration, error) {
	after := pool.Spec.Disruption.ConsolidateAfter.Duration
	initialized := conditions.Get(claim, v1.InitializedCondition)
	if after == nil || initialized == nil || initialized.Status != metav1.ConditionTrue {
		return 0, unset(claim, now)
	}
	quietSince := claim.Status.LastPodEventTime
	if quietSince.IsZero() {
		quietSince = initialized.LastTransitionTime
	}
	if left := quietSince.Add(*after).Sub(now); left > 0 && *after != 0 {
		return left, unset(claim, now)
	}
	claim.StatusConditions(now).SetTrue(v1.ConsolidatableCondition)
	return 0, nil
}

func unset(claim *v1.NodeClaim, now time.Time) error {
	if conditions.Get(claim, v1.ConsolidatableCondition) == nil {
		return nil
	}
	return claim.StatusConditions(now).Clear(v1.ConsolidatableCondition)
}
