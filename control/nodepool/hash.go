// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/stamp"
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

// keys are where the hash of a pool is kept.
var keys = stamp.Keys{Hash: v1.NodePoolHashAnnotationKey, HashVersion: v1.NodePoolHashVersionAnnotationKey, Version: v1.NodePoolHashVersion}

// Reconcile records the hash of one pool. A pool with unreadable fields keeps
// its hash.
func (r *Hash) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := read(ctx, r.Client, r.Provider, request)
	if pool == nil || err != nil || unreadable.Error(pool) != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, keys.Keep(ctx, r.Client, pool, pool.Hash(), func(ctx context.Context) ([]*v1.NodeClaim, error) {
		list := &v1.NodeClaimList{}
		if err := r.Client.List(ctx, list, client.MatchingLabels{v1.NodePoolLabelKey: pool.Name}); err != nil {
			return nil, fmt.Errorf("list node claims of node pool %s: %w", pool.Name, err)
		}
		var own []*v1.NodeClaim
		for i := range list.Items {
			if cloud.Manages(r.Provider, list.Items[i].Spec.NodeClassRef) {
				own = append(own, &list.Items[i])
			}
		}
		return own, nil
	})
}
