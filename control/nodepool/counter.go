// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

const (
	countPeriod = 5 * time.Second
	syncRetry   = time.Second
)

// Usage returns the capacity that a pool has in use.
type Usage interface {
	// Usage returns the capacity of the pool's nodes, on the axis of the
	// Counter, and their number.
	Usage(pool string) (model.Resources, int)
}

// Counter is the controller nodepool.counter. All fields are required.
type Counter struct {
	Client   client.Client
	Provider cloud.Provider
	Usage    Usage
	Axis     *model.Axis
	// Synced reports whether Usage has seen the whole cluster. Until then the
	// status is left as it is.
	Synced  func() bool
	Metrics *Metrics
}

// Register adds the controller to the manager.
func (r *Counter) Register(mgr manager.Manager, options controller.Options) error {
	// Only events of new pools are needed, because the counter then runs
	// periodically: the count changes with nodes, not with the pool.
	created := predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	return builder.ControllerManagedBy(mgr).
		Named("nodepool.counter").
		For(&v1.NodePool{}, builder.WithPredicates(managed(r.Provider), created)).
		WithOptions(options).
		Complete(r)
}

// Reconcile writes the capacity of one pool's nodes into its status, and
// repeats that periodically.
func (r *Counter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := read(ctx, r.Client, r.Provider, request)
	if pool == nil || err != nil {
		if err == nil {
			r.Metrics.forget(request.Name)
		}
		return reconcile.Result{}, err
	}
	if !r.Synced() {
		return reconcile.Result{RequeueAfter: syncRetry}, nil
	}
	usage, nodes := r.Usage.Usage(pool.Name)
	resources := resourceList(usage.With(model.Nodes, int64(nodes)), r.Axis.Names())
	if pool.Status.Nodes == int64(nodes) && maps.EqualFunc(pool.Status.Resources, resources, resource.Quantity.Equal) {
		r.Metrics.count(pool)
		return reconcile.Result{RequeueAfter: countPeriod}, nil
	}
	stored := pool.DeepCopy()
	pool.Status.Resources, pool.Status.Nodes = resources, int64(nodes)
	r.Metrics.count(pool.DeepCopy())
	result, err := writeStatus(ctx, r.Client, stored, pool)
	if err != nil || !result.IsZero() {
		return result, err
	}
	return reconcile.Result{RequeueAfter: countPeriod}, nil
}

// resourceList returns the resources by name: the standard ones always,
// others when there are any.
func resourceList(r model.Resources, names []string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i, name := range names {
		if v := r.At(i); v != 0 || i <= model.Nodes {
			out[corev1.ResourceName(name)] = quantity(i, v)
		}
	}
	return out
}

func quantity(position int, v int64) resource.Quantity {
	switch position {
	case model.CPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case model.Memory, model.EphemeralStorage:
		return *resource.NewQuantity(v, resource.BinarySI)
	default:
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
}
