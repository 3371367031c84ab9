// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud/stamp"
)

// Hash is the controller nodeclass.hash.
type Hash struct {
	Client client.Client
}

// Register adds the controller to the manager.
func (h *Hash) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclass.hash").
		For(&v1beta1.AKSNodeClass{}).
		WithOptions(options).
		Complete(h)
}

// keys are where the hash of a class is kept.
var keys = stamp.Keys{Hash: v1beta1.HashAnnotationKey, HashVersion: v1beta1.HashVersionAnnotationKey, Version: v1beta1.HashVersion}

// Reconcile records the hash of one class. One with fields that could not be read
// keeps the hash it has.
func (h *Hash) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &v1beta1.AKSNodeClass{}
	if err := h.Client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if unreadable.Error(class) != nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, keys.Keep(ctx, h.Client, class, class.Hash(), func(ctx context.Context) ([]*v1.NodeClaim, error) {
		list := &v1.NodeClaimList{}
		if err := h.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list node claims: %w", err)
		}
		var own []*v1.NodeClaim
		for i := range list.Items {
			if ref := list.Items[i].Spec.NodeClassRef; refers(ref) && ref.Name == class.Name {
				own = append(own, &list.Items[i])
			}
		}
		return own, nil
	})
}
