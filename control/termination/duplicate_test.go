// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
)

// A Node with the provider ID of another one is deleted: it goes, and neither
// the instance nor the NodeClaim of the busy Node is touched.
func TestDuplicateProviderID(t *testing.T) {
	s := newStage(t)
	s.declare("node n1")
	s.declare("claim c1 node=n1")
	s.declare("pod web")
	s.declare("node forged")
	s.open()
	ctx := t.Context()
	busy, forged := &corev1.Node{}, &corev1.Node{}
	s.must(s.client.Get(ctx, types.NamespacedName{Name: "n1"}, busy))
	s.must(s.client.Get(ctx, types.NamespacedName{Name: "forged"}, forged))
	forged.Spec.ProviderID = busy.Spec.ProviderID
	s.must(s.client.Update(ctx, forged))
	claim := &v1.NodeClaim{}
	s.must(s.client.Get(ctx, types.NamespacedName{Name: "c1"}, claim))
	wasDeleted := claim.DeletionTimestamp

	if _, err := s.nodes.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: "forged"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Get(ctx, types.NamespacedName{Name: "forged"}, forged); !apierrors.IsNotFound(err) {
		t.Errorf("the Node is still there: %v, finalizers %v", err, forged.Finalizers)
	}
	s.must(s.client.Get(ctx, types.NamespacedName{Name: "c1"}, claim))
	if !claim.DeletionTimestamp.Equal(wasDeleted) || s.machines.deletes > 0 {
		t.Errorf("claim deleted: %v, before: %v; instance terminated %d times", claim.DeletionTimestamp, wasDeleted, s.machines.deletes)
	}
}
