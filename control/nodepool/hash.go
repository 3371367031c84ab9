// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Hash is the controller nodepool.hash. All fields are required.
type Hash struct {
	Client   client.Client
	Provider cloud.Provider
}

// Register adds the controller to the manager.
func (r *Hash) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodepool.hash").
		For(&v1.NodePool{}, builder.WithPredicates(managed(r.Provider))).
		WithOptions(options).
		Complete(r)
}

// Reconcile records the hash of one pool. When the pool was hashed by other
// rules, its claims come first, so that the pool is not taken for done while
// a claim still carries a hash that cannot be compared. A pool with fields that
// could not be read keeps the hash it has.
func (r *Hash) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := read(ctx, r.Client, r.Provider, request)
	if pool == nil || err != nil || unreadable.Error(pool) != nil {
		return reconcile.Result{}, err
	}
	if pool.Annotations[v1.NodePoolHashVersionAnnotationKey] != v1.NodePoolHashVersion {
		if err := r.restampClaims(ctx, pool); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.annotate(ctx, pool, map[string]string{
		v1.NodePoolHashAnnotationKey:        pool.Hash(),
		v1.NodePoolHashVersionAnnotationKey: v1.NodePoolHashVersion,
	})
}

// restampClaims brings the claims of the pool to the current rules. A claim
// known to have drifted keeps its hash, so that it stays drifted.
func (r *Hash) restampClaims(ctx context.Context, pool *v1.NodePool) error {
	claims := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingLabels{v1.NodePoolLabelKey: pool.Name}); err != nil {
		return fmt.Errorf("list node claims of node pool %s: %w", pool.Name, err)
	}
	var failures []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) ||
			claim.Annotations[v1.NodePoolHashVersionAnnotationKey] == v1.NodePoolHashVersion {
			continue
		}
		stamps := map[string]string{v1.NodePoolHashVersionAnnotationKey: v1.NodePoolHashVersion}
		if conditions.Get(claim, v1.DriftedCondition) == nil {
			stamps[v1.NodePoolHashAnnotationKey] = pool.Hash()
		}
		failures = append(failures, r.annotate(ctx, claim, stamps))
	}
	return errors.Join(failures...)
}

// annotate adds the annotations to the object, if it lacks any.
func (r *Hash) annotate(ctx context.Context, object client.Object, annotations map[string]string) error {
	all := maps.Clone(object.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	if maps.Equal(all, object.GetAnnotations()) {
		return nil
	}
	stored := object.DeepCopyObject().(client.Object)
	object.SetAnnotations(all)
	return client.IgnoreNotFound(r.Client.Patch(ctx, object, client.MergeFrom(stored)))
}
