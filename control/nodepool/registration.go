// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// RegistrationHealth is the controller nodepool.registrationhealth. Only this controller
// writes the condition NodeRegistrationHealthy. Other controllers report claims that succeed
// or fail to Health. All fields are required.
type RegistrationHealth struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
	Health   *Health
}

// Register adds the controller to the manager.
func (r *RegistrationHealth) Register(mgr manager.Manager, options controller.Options) error {
	b := builder.ControllerManagedBy(mgr).
		Named("nodepool.registrationhealth").
		For(&v1.NodePool{}, builder.WithPredicates(managed(r.Provider))).
		Watches(&v1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(decided())).
		WithOptions(options)
	if err := watchClasses(b, r.Client, r.Provider); err != nil {
		return err
	}
	return b.Complete(r)
}

// poolOf names the pool of a claim.
func poolOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1.NodePoolLabelKey]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// decided admits events of claims that may have been reported to Health.
func decided() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*v1.NodeClaim), e.ObjectNew.(*v1.NodeClaim)
			return conditions.IsTrue(before, v1.RegisteredCondition) != conditions.IsTrue(after, v1.RegisteredCondition) ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Reconcile writes the health of the pool into its condition. Outcomes from
// before a change of the pool or its node class no longer count.
func (r *RegistrationHealth) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := read(ctx, r.Client, r.Provider, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pool == nil {
		r.Health.forget(request.Name)
		return reconcile.Result{}, nil
	}
	class, err := classOf(ctx, r.Client, r.Provider, pool)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	stored := pool.DeepCopy()
	set := pool.StatusConditions(r.Clock.Now())
	condition := set.Get(v1.NodeRegistrationHealthyCondition)
	r.Health.resume(pool, condition)
	if condition == nil || condition.ObservedGeneration != pool.Generation ||
		pool.Status.NodeClassObservedGeneration != class.GetGeneration() {
		r.Health.reset(pool)
		set.SetUnknown(v1.NodeRegistrationHealthyCondition)
	} else if v := r.Health.judge(pool); v.status != "" && v.status != condition.Status {
		set.Set(metav1.Condition{Type: condition.Type, Status: v.status, Reason: v.reason, Message: v.message})
	}
	pool.Status.NodeClassObservedGeneration = class.GetGeneration()
	return writeStatus(ctx, r.Client, stored, pool)
}
