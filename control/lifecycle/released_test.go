// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/control/controltest"
)

// TestReleasedNodeIsDrained deletes a claim whose status could not be written
// after its Node was let take pods, while the cache still shows the Node as it
// was before: the Node is deleted, so that it drains, and the instance waits.
func TestReleasedNodeIsDrained(t *testing.T) {
	for _, released := range []bool{false, true} {
		c := controltest.New(t)
		r := &Reconciler{Client: c.Client}
		claim := c.NewClaim("c")
		claim.Status.ProviderID = "fake:///c"
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-of-n", Finalizers: []string{"test.sh/kept"}},
			Spec:       corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
		}
		if err := c.Client.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if released {
			r.memory.released(claim, node.UID)
		}
		left, err := r.deleteNodes(t.Context(), &scope{claim: claim, conditions: claim.StatusConditions(c.Clock.Now())})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		if deleted := !node.DeletionTimestamp.IsZero(); deleted != released || (left > 0) != released {
			t.Errorf("released %t: deleted %t, %d nodes left", released, deleted, left)
		}
	}
}
