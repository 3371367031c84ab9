// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// nodeClass is the interface of every provider's node class.
type nodeClass interface {
	client.Object
	conditions.Reader
}

// managed admits events of the provider's pools.
func managed(p cloud.Provider) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.Manages(p, o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)
	})
}

// read returns the pool of the request, or nil if it is deleted or belongs to
// another provider.
func read(ctx context.Context, c client.Reader, p cloud.Provider, request reconcile.Request) (*v1.NodePool, error) {
	pool := &v1.NodePool{}
	if err := c.Get(ctx, request.NamespacedName, pool); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !cloud.Manages(p, pool.Spec.Template.Spec.NodeClassRef) {
		return nil, nil
	}
	return pool, nil
}

// writeStatus writes the status of pool over that of stored, as read, if it
// differs. If the pool has changed meanwhile, it requests another reconcile.
func writeStatus(ctx context.Context, c client.Client, stored, pool *v1.NodePool) (reconcile.Result, error) {
	if equality.Semantic.DeepEqual(stored.Status, pool.Status) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	err := c.Status().Patch(ctx, pool, patch)
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// classOf returns the node class the pool refers to. The pool is managed.
func classOf(ctx context.Context, c client.Client, p cloud.Provider, pool *v1.NodePool) (nodeClass, error) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	for _, gvk := range p.NodeClasses() {
		if gvk.GroupKind() != ref.GroupKind() {
			continue
		}
		class, err := newClass(c, gvk)
		if err != nil {
			return nil, err
		}
		return class, c.Get(ctx, client.ObjectKey{Name: ref.Name}, class)
	}
	return nil, fmt.Errorf("node class kind %s of node pool %s is not served", ref.GroupKind(), pool.Name)
}

func newClass(c client.Client, gvk schema.GroupVersionKind) (nodeClass, error) {
	object, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("node class %s: %w", gvk, err)
	}
	class, ok := object.(nodeClass)
	if !ok {
		return nil, fmt.Errorf("node class %s: it has no conditions", gvk)
	}
	return class, nil
}

// watchClasses reconciles the pools that refer to a node class when the class
// changes.
func watchClasses(b *builder.Builder, c client.Client, p cloud.Provider) error {
	for _, gvk := range p.NodeClasses() {
		class, err := newClass(c, gvk)
		if err != nil {
			return err
		}
		b.Watches(class, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return poolsOf(ctx, c, gvk.GroupKind(), o.GetName())
		}))
	}
	return nil
}

// poolsOf names the pools that refer to the node class.
func poolsOf(ctx context.Context, c client.Reader, kind schema.GroupKind, name string) []reconcile.Request {
	pools := &v1.NodePoolList{}
	if err := c.List(ctx, pools); err != nil {
		log.FromContext(ctx).Error(err, "node class event is lost")
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		ref := pools.Items[i].Spec.Template.Spec.NodeClassRef
		if ref != nil && ref.GroupKind() == kind && ref.Name == name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
	}
	return requests
}
