// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Readiness is the controller nodepool.readiness. All fields are required.
type Readiness struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
}

// Register adds the controller to the manager.
func (r *Readiness) Register(mgr manager.Manager, options controller.Options) error {
	b := builder.ControllerManagedBy(mgr).
		Named("nodepool.readiness").
		For(&v1.NodePool{}, builder.WithPredicates(managed(r.Provider))).
		WithOptions(options)
	if err := watchClasses(b, r.Client, r.Provider); err != nil {
		return err
	}
	return b.Complete(r)
}

// Reconcile mirrors the readiness of the pool's node class onto the pool.
func (r *Readiness) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := read(ctx, r.Client, r.Provider, request)
	if pool == nil || err != nil {
		return reconcile.Result{}, err
	}
	class, err := classOf(ctx, r.Client, r.Provider, pool)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	stored := pool.DeepCopy()
	set := pool.StatusConditions(r.Clock.Now())
	switch ready := readyOf(class, err); {
	case apierrors.IsNotFound(err):
		set.SetFalse(v1.NodeClassReadyCondition, v1.NodeClassNotFoundReason, "the node class does not exist")
	case !class.GetDeletionTimestamp().IsZero():
		set.SetFalse(v1.NodeClassReadyCondition, v1.NodeClassTerminatingReason, "the node class is being deleted")
	case ready == nil || ready.Status == metav1.ConditionUnknown:
		set.SetFalse(v1.NodeClassReadyCondition, v1.NodeClassReadinessUnknownReason, "it is not known yet whether the node class is ready")
	case ready.Status == metav1.ConditionFalse:
		set.SetFalse(v1.NodeClassReadyCondition, ready.Reason, ready.Message)
	default:
		set.SetTrue(v1.NodeClassReadyCondition)
	}
	return writeStatus(ctx, r.Client, stored, pool)
}

func readyOf(class nodeClass, err error) *metav1.Condition {
	if err != nil {
		return nil
	}
	return conditions.Get(class, conditions.Ready)
}
