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

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud/stamp"
)

// Hash is the controller nodeclass.hash.
type Hash struct {
	Client client.Client
	// CABundle is what nodes get to trust the API server with, in base64; ""
	// for none.
	CABundle string
}

// Register adds the controller to the manager.
func (h *Hash) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclass.hash").
		For(&awsv1.EC2NodeClass{}).
		WithOptions(options).
		Complete(h)
}

// keys are where the hash of a class is kept.
var keys = stamp.Keys{Hash: awsv1.HashAnnotationKey, HashVersion: awsv1.HashVersionAnnotationKey, Version: awsv1.HashVersion}

// Reconcile records the hash of one class. One with fields that could not be read
// keeps the hash it has.
func (h *Hash) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &awsv1.EC2NodeClass{}
	if err := h.Client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if unreadable.Error(class) != nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, keys.Keep(ctx, h.Client, class, class.Hash(h.CABundle), func(ctx context.Context) ([]*v1.NodeClaim, error) {
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
