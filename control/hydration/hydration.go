// SPDX-License-Identifier: Apache-2.0

// Package hydration labels NodeClaims and Nodes with their node class. Claims
// that this version creates have the label. Claims and Nodes from an older
// version may not have it.
package hydration

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/join"
)

// Claims is the controller nodeclaim.hydration. All fields are required.
type Claims struct {
	Client   client.Client
	Provider cloud.Provider
}

// Register adds the controller to the manager.
func (r *Claims) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.hydration").
		For(&v1.NodeClaim{}).
		WithOptions(options).
		Complete(r)
}

// Reconcile labels one claim.
func (r *Claims) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, label(ctx, r.Client, claim, claim.Spec.NodeClassRef)
}

// Nodes is the controller node.hydration. All fields are required; Client
// serves the indexes of package join.
type Nodes struct {
	Client   client.Client
	Provider cloud.Provider
}

// Register adds the controller to the manager.
func (r *Nodes) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("node.hydration").
		For(&corev1.Node{}).
		WithOptions(options).
		Complete(r)
}

// Reconcile labels one Node, if it belongs to a claim of ours.
func (r *Nodes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	claim, err := join.ClaimOf(ctx, r.Client, node)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, label(ctx, r.Client, node, claim.Spec.NodeClassRef)
}

// label puts the name of the node class on the object, if it is not there.
func label(ctx context.Context, c client.Client, object client.Object, ref *v1.NodeClassReference) error {
	key := v1.NodeClassLabelKey(ref.GroupKind())
	if object.GetLabels()[key] == ref.Name {
		return nil
	}
	stored := object.DeepCopyObject().(client.Object)
	labels := map[string]string{key: ref.Name}
	for k, v := range object.GetLabels() {
		if k != key {
			labels[k] = v
		}
	}
	object.SetLabels(labels)
	return client.IgnoreNotFound(c.Patch(ctx, object, client.MergeFrom(stored)))
}
