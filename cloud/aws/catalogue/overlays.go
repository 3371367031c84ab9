// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	"karpenter/api/v1alpha1"
	"karpenter/model"
)

// overlayPrices are the prices that NodeOverlays give to types by name, for those
// that have no other. They never change.
type overlayPrices struct{ of map[string]model.Price }

func (c *Catalogue) registerOverlays(mgr manager.Manager) error {
	if c.config.Overlays == nil {
		return nil
	}
	return builder.ControllerManagedBy(mgr).
		Named("providers.overlayprices").
		Watches(&v1alpha1.NodeOverlay{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{}}
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, c.RefreshOverlays(ctx)
		}))
}

// RefreshOverlays reads the prices in NodeOverlays that are valid, set a price,
// and have no requirement except the instance type. If several match, the one
// with precedence among NodeOverlays counts.
func (c *Catalogue) RefreshOverlays(ctx context.Context) error {
	list := &v1alpha1.NodeOverlayList{}
	if err := c.config.Overlays.List(ctx, list); err != nil {
		return fmt.Errorf("list node overlays: %w", err)
	}
	overlays := slices.Clone(list.Items)
	slices.SortFunc(overlays, func(a, b v1alpha1.NodeOverlay) int { return v1alpha1.Compare(&b, &a) }) // the winner last
	prices := map[string]model.Price{}
	for i := range overlays {
		o := &overlays[i]
		if o.Spec.Price == nil || len(o.Spec.Requirements) != 1 || !conditions.IsTrue(o, v1alpha1.ValidationSucceededCondition) {
			continue
		}
		price, ok := parsePrice(*o.Spec.Price)
		if r := o.Spec.Requirements[0]; ok && r.Key == corev1.LabelInstanceTypeStable && string(r.Operator) == string(corev1.NodeSelectorOpIn) {
			for _, name := range r.Values {
				prices[name] = price
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(prices, c.overlays.Load().of) {
		c.overlays.Store(&overlayPrices{prices})
	}
	return nil
}
