// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func fakeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Annotations: map[string]string{FakeNodeAnnotation: "fake"},
	}}
}

func newTestFleet(t *testing.T, nodes ...*corev1.Node) *fleet {
	indexers := cache.Indexers{byNode: nodeNameOf}
	client := fake.NewClientset()
	f := newFleet(client, DefaultOptions(), slog.New(slog.NewTextHandler(t.Output(), nil)),
		cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers))
	for _, node := range nodes {
		if err := f.nodes.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestNodePatch(t *testing.T) {
	node := fakeNode("a")
	node.Labels = map[string]string{corev1.LabelArchStable: "arm64"}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("2")}
	f := newTestFleet(t, node)
	patch := f.nodePatch(node, true)
	if patch.Status.Capacity != nil || patch.Status.Allocatable.Cpu().String() != "2" {
		t.Errorf("capacity given at creation was not kept: %+v", patch.Status)
	}
	if patch.Status.NodeInfo.Architecture != "arm64" || len(patch.Status.Conditions) != 5 || len(patch.Status.Addresses) != 2 {
		t.Errorf("patch %+v", patch.Status)
	}
	node.Status.Conditions = patch.Status.Conditions
	if !ready(node) || f.nodePatch(node, true) != nil {
		t.Error("a node that is as wanted is patched again")
	}
	if patch := f.nodePatch(node, false); patch == nil || patch.Status.Conditions[4].Status != corev1.ConditionFalse {
		t.Errorf("a node kept NotReady: %+v", patch)
	}
}

func TestLeaseIsCreatedThenRenewed(t *testing.T) {
	ctx, f := context.Background(), newTestFleet(t, fakeNode("a"))
	for range 2 {
		again, err := f.syncLease(ctx, "a")
		if err != nil || again < DefaultOptions().RenewInterval {
			t.Fatalf("next renewal in %v, %v", again, err)
		}
	}
	lease, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "a", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "a" || lease.OwnerReferences[0].UID != "a" {
		t.Errorf("lease %+v, %v", lease, err)
	}
	f.leases.set("a", nil) // as after a restart of this process
	if _, err := f.syncLease(ctx, "a"); err != nil {
		t.Errorf("an existing lease is not taken up: %v", err)
	}
}

func TestOnlyLiveSimulatedNodesHaveHeartbeats(t *testing.T) {
	dead, foreign := fakeNode("dead"), fakeNode("foreign")
	dead.Annotations[HeartbeatAnnotation] = "false"
	foreign.Annotations = nil
	f := newTestFleet(t, dead, foreign)
	for _, name := range []string{"dead", "foreign", "gone"} {
		if again, err := f.syncLease(context.Background(), name); again != 0 || err != nil {
			t.Errorf("%s: renewed again in %v, %v", name, again, err)
		}
	}
}

func TestAddressesAreUnique(t *testing.T) {
	a := newAddresses("10.0.0.0/29")
	a.claim("old", "10.0.0.1")
	first := a.assign("new")
	if first != "10.0.0.2" || a.assign("new") != first || a.assign("old") != "10.0.0.1" {
		t.Errorf("new has %s then %s, old %s", first, a.assign("new"), a.assign("old"))
	}
	a.release("old")
	seen := map[string]bool{first: true}
	for _, owner := range []types.UID{"b", "c", "d", "e", "f", "g"} {
		ip := a.assign(owner)
		if seen[ip] {
			t.Errorf("%s given twice", ip)
		}
		seen[ip] = true
	}
}
