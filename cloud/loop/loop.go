// SPDX-License-Identifier: Apache-2.0

// Package loop repeats work that no event asks for, as controllers do: on the
// leader, and after a failure with growing delays.
package loop

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Every adds a controller that works at once and then every period.
func Every(mgr manager.Manager, name string, period time.Duration, work func(context.Context) error) error {
	return After(mgr, name, func(ctx context.Context) (time.Duration, error) { return period, work(ctx) })
}

// Work is one round. It says when the next one is due, which must not be 0.
type Work func(context.Context) (time.Duration, error)

// Reconcile does the round as a controller.
func (w Work) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	next, err := w(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// After a failure work is tried again after least, the next time after twice as
// long, and so on up to most.
const (
	least = time.Second
	most  = 2 * time.Minute
)

// After adds a controller that works at once and then when the work says.
func After(mgr manager.Manager, name string, work Work) error {
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named(name).
		WatchesRawSource(start).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](least, most),
		}).
		Complete(work)
}
