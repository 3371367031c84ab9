// SPDX-License-Identifier: Apache-2.0

package nodeclass

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

	"karpenter/api/azure/v1beta1"
	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
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

// Reconcile records the hash of one class. When the class was hashed by other
// rules its claims come first, so that it is not taken for done while a claim
// carries a hash that cannot be compared. A class with fields that could not be
// read keeps the hash it has.
func (h *Hash) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &v1beta1.AKSNodeClass{}
	if err := h.Client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if unreadable.Error(class) != nil {
		return reconcile.Result{}, nil
	}
	hash := class.Hash()
	if class.Annotations[v1beta1.HashVersionAnnotationKey] != v1beta1.HashVersion {
		if err := h.restampClaims(ctx, class, hash); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, h.annotate(ctx, class, map[string]string{
		v1beta1.HashAnnotationKey: hash, v1beta1.HashVersionAnnotationKey: v1beta1.HashVersion,
	})
}

// restampClaims brings the claims of the class to the current rules. A claim
// known to have drifted keeps its hash, so that it stays drifted.
func (h *Hash) restampClaims(ctx context.Context, class *v1beta1.AKSNodeClass, hash string) error {
	claims := &v1.NodeClaimList{}
	if err := h.Client.List(ctx, claims); err != nil {
		return fmt.Errorf("list node claims: %w", err)
	}
	var failures []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		if ref := claim.Spec.NodeClassRef; !refers(ref) || ref.Name != class.Name || claim.Annotations[v1beta1.HashVersionAnnotationKey] == v1beta1.HashVersion {
			continue
		}
		stamps := map[string]string{v1beta1.HashVersionAnnotationKey: v1beta1.HashVersion}
		if conditions.Get(claim, v1.DriftedCondition) == nil {
			stamps[v1beta1.HashAnnotationKey] = hash
		}
		failures = append(failures, h.annotate(ctx, claim, stamps))
	}
	return errors.Join(failures...)
}

// annotate adds the annotations to the object, if it lacks any.
func (h *Hash) annotate(ctx context.Context, object client.Object, annotations map[string]string) error {
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
	return client.IgnoreNotFound(h.Client.Patch(ctx, object, client.MergeFrom(stored)))
}
