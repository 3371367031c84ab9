// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Validation is the controller nodepool.validation. All fields are required.
type Validation struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
	Labels   v1.Labels // what core and provider know about label keys
}

// Register adds the controller to the manager.
func (r *Validation) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodepool.validation").
		For(&v1.NodePool{}, builder.WithPredicates(managed(r.Provider))).
		WithOptions(options).
		Complete(r)
}

// Reconcile sets the condition that reports whether the pool is valid beyond
// the checks of its schema.
func (r *Validation) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := read(ctx, r.Client, r.Provider, request)
	if pool == nil || err != nil {
		return reconcile.Result{}, err
	}
	stored := pool.DeepCopy()
	set := pool.StatusConditions(r.Clock.Now())
	if err := v1.ValidateNodePool(pool, r.Labels); err != nil {
		set.SetFalse(v1.ValidationSucceededCondition, v1.NodePoolValidationFailedReason, err.Error())
	} else {
		for _, w := range v1.NodePoolWarnings(pool, r.Labels) {
			log.FromContext(ctx).Error(nil, "node pool is accepted but should be corrected", "problem", w)
		}
		set.SetTrue(v1.ValidationSucceededCondition)
	}
	return writeStatus(ctx, r.Client, stored, pool)
}
