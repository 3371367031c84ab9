// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
)

// watch reconciles claims when the spec or the hash of their pool changes, and
// when their node class changes in any way.
func (r *Reconciler) watch(b *builder.Builder) error {
	b.Watches(&v1.NodePool{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfPool),
		builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})))
	for _, gvk := range r.Provider.NodeClasses() {
		object, err := r.Client.Scheme().New(gvk)
		if err != nil {
			return fmt.Errorf("node class %s: %w", gvk, err)
		}
		class, ok := object.(client.Object)
		if !ok {
			return fmt.Errorf("node class %s: it is no object", gvk)
		}
		b.Watches(class, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.claimsOfClass(ctx, gvk.GroupKind(), o.GetName())
		}))
	}
	return nil
}

// claimsOfPool names the claims of a pool.
func (r *Reconciler) claimsOfPool(ctx context.Context, pool client.Object) []reconcile.Request {
	return r.claims(ctx, func(*v1.NodeClaim) bool { return true }, client.MatchingLabels{v1.NodePoolLabelKey: pool.GetName()})
}

// claimsOfClass names the claims that refer to a node class.
func (r *Reconciler) claimsOfClass(ctx context.Context, kind schema.GroupKind, name string) []reconcile.Request {
	return r.claims(ctx, func(c *v1.NodeClaim) bool {
		ref := c.Spec.NodeClassRef
		return ref != nil && ref.GroupKind() == kind && ref.Name == name
	})
}

func (r *Reconciler) claims(ctx context.Context, wanted func(*v1.NodeClaim) bool, options ...client.ListOption) []reconcile.Request {
	list := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "event is lost; its node claims are checked within minutes")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
