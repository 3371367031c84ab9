// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/health"
	"karpenter/model"
)

func TestConforms(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) *cloudtest.Cloud {
		h := newHarness(t, DefaultEntries())
		return &cloudtest.Cloud{
			Provider: h.provider,
			Pool:     &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			Class:    nodeClass(),
			Store:    func(_ *testing.T, claim *v1.NodeClaim) { h.store(claim) },
			Settle:   func(*testing.T) { h.settle() },
			SellOut: func(instanceType, zone, capacityType string) {
				h.provider.launchErrors[offeringKey{instanceType: instanceType, zone: zone, capacityType: capacityType}] = InsufficientCapacity
			},
		}
	})
}

// spec 50/16: the cheapest compatible offering, with the labels of it.
func TestCreate(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	m := h.launch(h.claim("general-7x2kq",
		in(corev1.LabelInstanceTypeStable, "m-2x-arm64-linux", "c-2x-amd64-linux", "s-2x-amd64-linux"),
		in(corev1.LabelTopologyZone, "test-zone-c", "test-zone-b"),
		in("team", "blue")))
	want := map[string]string{
		v1.NodePoolLabelKey:                 "default",
		"team":                              "blue",
		corev1.LabelInstanceTypeStable:      "c-2x-amd64-linux",
		corev1.LabelArchStable:              "amd64",
		corev1.LabelOSStable:                "linux",
		corev1.LabelTopologyZone:            "test-zone-b",
		v1.CapacityTypeLabelKey:             "spot",
		kwokv1alpha1.InstanceSizeLabelKey:   "2",
		kwokv1alpha1.InstanceFamilyLabelKey: "c",
		kwokv1alpha1.InstanceCPULabelKey:    "2",
		kwokv1alpha1.InstanceMemoryLabelKey: "4Gi",
		"eks-node-viewer/instance-price":    "0.038006",
		"kwok-partition":                    "a",
		"kubernetes.io/hostname":            "general-7x2kq",
		"kwok.x-k8s.io/node":                "fake",
	}
	if diff := cmp.Diff(want, m.Labels); diff != "" {
		t.Error(diff)
	}
	for list, quantities := range map[string]map[corev1.ResourceName]string{
		"capacity":    {"cpu": "2", "memory": "4Gi", "pods": "32", "ephemeral-storage": "20Gi"},
		"allocatable": {"cpu": "1900m", "memory": "4086Mi", "pods": "32", "ephemeral-storage": "20Gi"},
	} {
		got := map[corev1.ResourceName]string{}
		for name, q := range map[string]corev1.ResourceList{"capacity": m.Capacity, "allocatable": m.Allocatable}[list] {
			got[name] = q.String()
		}
		if diff := cmp.Diff(quantities, got); diff != "" {
			t.Errorf("%s: %s", list, diff)
		}
	}
}

// A claim without an instance type requirement, as static NodePools make, is
// launched too.
// A launch goes by the overlaid prices and capacities, and waits for the
// overlays of its pool. A claim of no pool has none.
func TestCreateOverlaid(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	var known error
	h.provider.overlay = func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error) {
		if pool != "default" {
			t.Errorf("asked for pool %q", pool)
		}
		out := slices.Clone(types)
		for i := range out {
			if out[i].Name == "m-2x-amd64-linux" {
				it := *out[i]
				it.Capacity = it.Capacity.DeepCopy()
				it.Capacity["example.com/fuse"] = resource.MustParse("20")
				it.Offerings = slices.Clone(it.Offerings)
				for j := range it.Offerings {
					it.Offerings[j].Price = 0
				}
				out[i] = &it
			}
		}
		return out, known
	}
	claim := h.claim("a", in(corev1.LabelInstanceTypeStable, "c-2x-amd64-linux", "m-2x-amd64-linux"))
	known = &cloud.UnevaluatedNodePoolError{}
	if _, err := h.provider.Create(t.Context(), claim); !cloud.IsUnevaluatedNodePool(err) {
		t.Errorf("before the overlays are known: error %v", err)
	}
	known = nil
	m := h.launch(claim)
	if fuse := m.Allocatable["example.com/fuse"]; m.Labels[corev1.LabelInstanceTypeStable] != "m-2x-amd64-linux" || fuse.Value() != 20 {
		t.Errorf("launched %s with %s fuses, want the one made cheap, with 20", m.Labels[corev1.LabelInstanceTypeStable], fuse.String())
	}
	alone := &v1.NodeClaim{}
	if types, _, err := h.provider.typesFor(t.Context(), alone); err != nil || len(types) == 0 {
		t.Errorf("a claim of no pool is offered %d types, error %v", len(types), err)
	}
}

// A launch goes by what nodes cost, not their instances; the label has the price of
// the instance.
func TestCreateWithExtras(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	var extras []model.Extra
	var failed error
	h.provider.extras = func(_ context.Context, pool string) ([]model.Extra, error) {
		if pool != "default" {
			t.Errorf("asked for pool %q", pool)
		}
		return extras, failed
	}
	launch := func(name string) (instanceType, price string) {
		t.Helper()
		m := h.launch(h.claim(name, in(corev1.LabelInstanceTypeStable, "c-4x-amd64-linux", "m-2x-amd64-linux"), in(v1.CapacityTypeLabelKey, "on-demand")))
		return m.Labels[corev1.LabelInstanceTypeStable], m.Labels[PriceLabelKey]
	}
	cheapest, price := launch("without")
	extras = []model.Extra{{Name: "licence", Price: model.Dollar, VCPU: true}, {Name: "agent", Price: model.Dollar / 100}}
	if got, same := launch("with"); cheapest != "m-2x-amd64-linux" || got != cheapest || same != price {
		t.Errorf("%s for %s, with extras %s for %s: want the smaller one, for the same", cheapest, price, got, same)
	}
	extras = []model.Extra{{Name: "licence", Price: model.Dollar, Zone: "test-zone-a"}}
	m := h.launch(h.claim("elsewhere", in(v1.CapacityTypeLabelKey, "on-demand")))
	if zone := m.Labels[corev1.LabelTopologyZone]; zone == "test-zone-a" || zone == "" {
		t.Errorf("launched in zone %q, where nodes cost more", zone)
	}
	failed = errors.New("no answer")
	if _, err := h.provider.Create(t.Context(), h.claim("failing")); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

func TestCreateWithoutType(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	m := h.launch(h.claim("static", in(corev1.LabelOSStable, "linux"), in(v1.CapacityTypeLabelKey, "on-demand")))
	if got := m.Labels[corev1.LabelInstanceTypeStable]; got != "c-2x-amd64-linux" {
		t.Errorf("launched %s; c-1x has too little for a request of one cpu", got)
	}
}

// spec 50/17: what a missing and a failing node class do to a launch.
func TestCreateNodeClass(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&class.Status.Conditions, metav1.Condition{
		Type: v1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "Broken", Message: "it is broken",
	})
	if err := h.client.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	c := h.claim("a")
	if _, err := h.provider.Create(t.Context(), c); !cloud.IsNodeClassNotReady(err) || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("class not ready: %v", err)
	}
	class.Annotations = map[string]string{unreadable.AnnotationKey: "spec.nodeRegistrationDelay: cannot be read"}
	if err := h.client.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if _, err := h.provider.Create(t.Context(), c); !cloud.IsNodeClassNotReady(err) || !strings.Contains(err.Error(), "spec.nodeRegistrationDelay") {
		t.Errorf("class with a field that cannot be read: %v", err)
	}
	if err := h.client.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if _, err := h.provider.Create(t.Context(), c); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("no class: %v, want insufficient capacity", err)
	}
}

// spec 50/18: a machine whose Node is deleted is not found; Delete is done in
// one round.
func TestGoneWithNode(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	c := h.claim("a")
	m := h.launch(c)
	h.settle()
	h.condition(c, v1.RegisteredCondition)
	if _, err := h.provider.Get(t.Context(), m.ProviderID); err != nil {
		t.Fatal(err)
	}
	node := h.nodes()[0]
	node.Finalizers = []string{v1.TerminationFinalizer}
	if err := h.client.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	if err := h.client.Delete(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	if _, err := h.provider.Get(t.Context(), m.ProviderID); !cloud.IsNotFound(err) {
		t.Errorf("node being deleted: %v, want not found", err)
	}
	if listed, err := h.provider.List(t.Context()); err != nil || len(listed) != 1 || !listed[0].Deleting {
		t.Errorf("node being deleted: listed %v, %v; want one that is going away", listed, err)
	}
	if err := h.provider.Delete(t.Context(), c); !cloud.IsNotFound(err) {
		t.Errorf("delete with the node waiting for its finalizer: %v, want not found", err)
	}

	node = h.nodes()[0]
	node.Finalizers = nil
	if err := h.client.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	h.settle()
	if _, err := h.provider.Get(t.Context(), m.ProviderID); !cloud.IsNotFound(err) {
		t.Errorf("node gone: %v, want not found", err)
	}
	if got := h.nodes(); len(got) != 0 {
		t.Errorf("a lost machine has booted again: %v", got)
	}
}

// An unregistered claim is finalised without its Node being deleted first:
// Delete takes the Node along.
func TestDeleteTakesNode(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	c := h.claim("a")
	h.launch(c)
	h.settle()
	if len(h.nodes()) != 1 {
		t.Fatal("not booted")
	}
	if err := h.provider.Delete(t.Context(), c); !cloud.IsNotFound(err) {
		t.Errorf("%v, want not found", err)
	}
	if got := h.nodes(); len(got) != 0 {
		t.Errorf("nodes %v after delete", got)
	}
	now := &v1.NodeClaim{}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(c), now); err != nil || now.DeletionTimestamp.IsZero() {
		t.Errorf("the claim would boot again: %v, %v", now.DeletionTimestamp, err)
	}
	h.settle()
	if got := h.nodes(); len(got) != 0 {
		t.Errorf("nodes %v after boot ran again", got)
	}
}

// A launch that fails is not repeated for three minutes, however many claims
// ask, and goes to the next best offering.
func TestLaunchError(t *testing.T) {
	entries := DefaultEntries()[:3]
	for i := range entries[0].Offerings {
		entries[0].Offerings[i].LaunchError = InsufficientCapacity
	}
	h := newHarness(t, entries)
	one := in(corev1.LabelInstanceTypeStable, entries[0].Name)
	c := h.claim("a", one)
	c.Spec.Resources.Requests = nil
	before, _ := h.provider.InstanceTypes(t.Context(), nil)
	_, err := h.provider.Create(t.Context(), c)
	if !cloud.IsInsufficientCapacity(err) || !strings.Contains(err.Error(), "c-1x-amd64-linux/test-zone-a/spot") || !strings.Contains(err.Error(), "3 more") {
		t.Errorf("every launch fails: %v", err)
	}
	available := func() (n int) {
		types, err := h.provider.InstanceTypes(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range types[0].Offerings {
			if o.Available {
				n++
			}
		}
		return n
	}
	if !before[0].Offerings[0].Available {
		t.Error("types handed out before have changed")
	}
	h.clock.SetTime(start().Add(unavailableFor - time.Second))
	if n := available(); n != 0 {
		t.Errorf("%d offerings available just before three minutes", n)
	}
	unchanged, _ := h.provider.InstanceTypes(t.Context(), nil)
	if again, _ := h.provider.InstanceTypes(t.Context(), nil); &again[0] != &unchanged[0] || again[1] != before[1] {
		t.Error("unchanged types are not the same pointers")
	}
	h.clock.SetTime(start().Add(unavailableFor))
	if n := available(); n != 8 {
		t.Errorf("%d offerings available after three minutes, want 8", n)
	}

	other := h.claim("b")
	other.Spec.Resources.Requests = nil
	if m := h.launch(other); m.Labels[corev1.LabelInstanceTypeStable] != "c-1x-amd64-windows" {
		t.Errorf("launched %v, want the next cheapest", m.Labels)
	}
	if n := available(); n != 4 {
		t.Errorf("%d offerings available, want only those dearer than what was launched", n)
	}
}

// The name is a label value whatever the claim is called, and tells claims of
// one name apart.
func TestNodeName(t *testing.T) {
	named := func(name, uid string) string {
		return nodeName(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}})
	}
	if got, want := named("general-7x2kq", "0c0b"), named("general-7x2kq", "0c0b"); got != want {
		t.Errorf("%s and %s for one claim", got, want)
	}
	if named("a", "1") == named("a", "2") {
		t.Error("one name for two claims")
	}
	long := strings.Repeat("long-pool.name-", 20)
	for _, uid := range []string{"1", "2", "3", "4", "5"} {
		for n := range len(long) {
			name := named("x"+long[:n], uid)
			if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 || len(name) > 63 || !strings.HasPrefix(name, "kwok-x") {
				t.Fatalf("%q of %d characters: %v", name, len(name), bad)
			}
		}
	}
	for _, words := range []string{adjectives, nouns} {
		if list := strings.Fields(words); len(list) != 32 {
			t.Errorf("%d words", len(list))
		}
	}
}

func TestRepairPolicies(t *testing.T) {
	got := newHarness(t, DefaultEntries()).provider.RepairPolicies()
	if _, err := health.New(got); err != nil {
		t.Error(err)
	}
	var text []string
	for _, p := range got {
		text = append(text, fmt.Sprintf("%s=%s %q %s bound %s: %s", p.ConditionType, p.ConditionStatus, p.ReasonRegex, p.Toleration, p.TerminationGracePeriod, p.Action))
	}
	want := []string{ // spec 48 §15
		`Ready=False "" 10m0s bound 0s: ReplaceNode`, `Ready=Unknown ".*" 10m0s bound 0s: ReplaceNode`,
		`KWOKUnhealthy=True ".*" 30s bound 45s: ReplaceNode`, `KWOKRebootRequired=True ".*" 30s bound 1m0s: RebootNode`,
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// A claim that has gone or been replaced is not launched.
func TestCreateStaleClaim(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	ghost := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "ghost"}}
	if _, err := h.provider.Create(t.Context(), ghost); !apierrors.IsNotFound(err) {
		t.Errorf("claim that is gone: %v", err)
	}
	c := h.claim("a")
	c.UID = "another"
	if _, err := h.provider.Create(t.Context(), c); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("claim that was replaced: %v", err)
	}
	stranger := &cloud.Machine{ProviderID: "kwok://kwok-x", Claim: "a", ClaimUID: "another"}
	if err := h.provider.Delete(t.Context(), stranger.Remnant()); !cloud.IsNotFound(err) {
		t.Errorf("delete: %v", err)
	}
	now := &v1.NodeClaim{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: "a"}, now); err != nil || !now.DeletionTimestamp.IsZero() {
		t.Errorf("deleting the remnant of another claim touched this one: %v", err)
	}
}
