// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

func TestBootMakesNode(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	c := h.claim("a")
	m := h.launch(c)
	h.reconcile("a")
	nodes := h.nodes()
	if len(nodes) != 1 {
		t.Fatalf("%d nodes, want 1", len(nodes))
	}
	node, blocks := nodes[0], true
	labels := maps.Clone(m.Labels)
	labels["beta.kubernetes.io/arch"] = labels[corev1.LabelArchStable]
	labels["beta.kubernetes.io/os"] = labels[corev1.LabelOSStable]
	labels[corev1.LabelInstanceType] = labels[corev1.LabelInstanceTypeStable]
	labels[corev1.LabelFailureDomainBetaZone] = labels[corev1.LabelTopologyZone]
	want := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(c), ResourceVersion: node.ResourceVersion,
			Labels:      labels,
			Annotations: map[string]string{"example.com/note": "hello", "kwok.x-k8s.io/node": "fake"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "a", UID: c.UID, BlockOwnerDeletion: &blocks,
			}},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "kwok://" + nodeName(c),
			Taints:     []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}},
		},
		Status: corev1.NodeStatus{Phase: corev1.NodePending, Capacity: m.Capacity, Allocatable: m.Allocatable},
	}
	equal := cmp.Comparer(func(a, b corev1.ResourceList) bool { return cloud.Holds(a, b) && cloud.Holds(b, a) })
	if diff := cmp.Diff(want, node, equal); diff != "" {
		t.Error(diff)
	}
	h.reconcile("a")
	if got := len(h.nodes()); got != 1 {
		t.Errorf("%d nodes after a second reconcile", got)
	}
}

// spec 50/19: the Node appears only when the registration delay has passed
// since the launch.
func TestBootWaits(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	class.Spec.NodeRegistrationDelay = &metav1.Duration{Duration: 30 * time.Second}
	if err := h.client.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	h.launch(h.claim("a"))
	h.clock.SetTime(start().Add(20 * time.Second))
	if got := h.reconcile("a"); got.RequeueAfter != 10*time.Second || len(h.nodes()) != 0 {
		t.Errorf("after 20 s of 30: %+v and %d nodes, want to wait 10 s", got, len(h.nodes()))
	}
	if listed, err := h.provider.List(t.Context()); err != nil || len(listed) != 1 {
		t.Errorf("machines while booting: %v, %v", listed, err)
	}
	h.clock.SetTime(start().Add(30 * time.Second))
	if got := h.reconcile("a"); got.RequeueAfter != 0 || len(h.nodes()) != 1 {
		t.Errorf("after 30 s: %+v and %d nodes", got, len(h.nodes()))
	}
}

func TestBootLeavesAlone(t *testing.T) {
	for name, prepare := range map[string]func(h *harness){
		"not launched": func(h *harness) { h.claim("a") },
		"deleting": func(h *harness) {
			c := h.claim("a")
			h.launch(c)
			if err := h.client.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		},
		"registered before": func(h *harness) {
			c := h.claim("a")
			h.launch(c)
			h.condition(c, v1.RegisteredCondition)
		},
		"another provider's": func(h *harness) {
			c := h.claim("a")
			h.record(c, &cloud.Machine{ProviderID: "aws:///a/b", Labels: map[string]string{}})
		},
	} {
		h := newHarness(t, DefaultEntries())
		prepare(h)
		h.reconcile("a")
		if got := h.nodes(); len(got) != 0 {
			t.Errorf("%s: nodes %v", name, got)
		}
	}
}

// A Node whose claim has vanished, as when both were deleted while the Node
// was being made, is collected; the Nodes of others are not.
func TestBootCollects(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	for _, name := range []string{"gone", "stays"} {
		h.launch(h.claim(name))
		h.reconcile(name)
	}
	gone := &v1.NodeClaim{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: "gone"}, gone); err != nil {
		t.Fatal(err)
	}
	gone.Finalizers = nil
	if err := h.client.Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := h.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	machines, err := h.provider.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claims := &v1.NodeClaimList{}
	if err := h.client.List(t.Context(), claims); err != nil {
		t.Fatal(err)
	}
	for _, m := range machines { // the API in memory does not date Nodes
		m.Created = start()
	}
	if orphans := cloud.Orphans(machines, claims.Items, start().Add(time.Second)); len(orphans) != 1 || orphans[0].Claim != "gone" {
		t.Errorf("orphans %v, want the machine of the claim that is gone", orphans)
	}
	h.settle()
	nodes := h.nodes()
	if len(nodes) != 1 {
		t.Fatalf("%d nodes, want 1", len(nodes))
	}
	if ref, _ := owner(&nodes[0]); ref.Name != "stays" {
		t.Errorf("the node of %s is left", ref.Name)
	}
}

var errCrash = errors.New("crash")

// failWrite makes the n-th create or delete from now on fail, counted from 0,
// and returns the count of them.
func (h *harness) failWrite(n int) *int {
	writes := new(int)
	count := func() error {
		*writes++
		if *writes == n+1 {
			return errCrash
		}
		return nil
	}
	h.client = interceptor.NewClient(h.client, interceptor.Funcs{
		Create: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := count(); err != nil {
				return err
			}
			return cl.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, cl client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := count(); err != nil {
				return err
			}
			return cl.Delete(ctx, obj, opts...)
		},
	})
	return writes
}

// Whatever write a crash prevents, the next process ends with one Node for the
// claim, or with none once the claim is deleted.
func TestBootAfterCrash(t *testing.T) {
	for fail := range 4 {
		h := newHarness(t, DefaultEntries())
		c := h.claim("a")
		writes := h.failWrite(fail)
		catalogue, err := NewCatalogue(DefaultEntries())
		if err != nil {
			t.Fatal(err)
		}
		h.restart(catalogue)
		retry := func(step func() error) {
			for range 5 {
				if err := step(); !errors.Is(err, errCrash) {
					return
				}
				h.restart(catalogue)
			}
			t.Fatalf("fail %d: no success in five tries", fail)
		}
		var first *cloud.Machine
		retry(func() (err error) { first, err = h.provider.Create(t.Context(), c); return err })
		h.restart(catalogue) // before the machine is recorded
		h.launch(c)
		boot := func() error {
			_, err := h.boot.Reconcile(t.Context(), request("a"))
			return err
		}
		retry(boot)
		retry(boot)
		if nodes := h.nodes(); len(nodes) != 1 || nodes[0].Spec.ProviderID != first.ProviderID {
			t.Errorf("fail %d: nodes %v, want one of %s", fail, nodes, first.ProviderID)
		}
		retry(func() error { return h.provider.Delete(t.Context(), c) })
		retry(boot)
		if nodes := h.nodes(); len(nodes) != 0 {
			t.Errorf("fail %d: nodes %v after delete", fail, nodes)
		}
		if *writes < 3 {
			t.Errorf("fail %d: only %d writes, the crash came after the last", fail, *writes)
		}
	}
}

// A cache that has not seen a claim's deletion must not boot its machine.
func TestBootReadsClaimLive(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	c := h.claim("a")
	h.launch(c)
	stale := c.DeepCopy()
	if err := h.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.boot.client = interceptor.NewClient(h.client, interceptor.Funcs{
		Get: func(ctx context.Context, cl client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if claim, ok := obj.(*v1.NodeClaim); ok {
				stale.DeepCopyInto(claim)
				return nil
			}
			return cl.Get(ctx, key, obj, opts...)
		},
	})
	h.reconcile("a")
	if got := h.nodes(); len(got) != 0 {
		t.Errorf("nodes %v for a claim that is being deleted", got)
	}
}
