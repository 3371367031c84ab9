// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// harness is a provider and its Boot on an API in memory.
type harness struct {
	t        *testing.T
	client   client.WithWatch
	clock    *clocktesting.FakePassiveClock
	provider *Provider
	boot     *Boot
}

func start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func newHarness(t *testing.T, entries []Entry) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	catalogue, err := NewCatalogue(entries)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{
		t:      t,
		client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.NodeClaim{}, &kwokv1alpha1.KWOKNodeClass{}).Build(),
		clock:  clocktesting.NewFakePassiveClock(start()),
	}
	h.restart(catalogue)
	h.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	return h
}

// restart forgets everything but the API, as a crash does.
func (h *harness) restart(catalogue *Catalogue) {
	config := Config{Client: h.client, Live: h.client, Catalogue: catalogue, Clock: h.clock}
	h.provider, h.boot = New(config), NewBoot(config)
}

func (h *harness) create(obj client.Object) {
	h.t.Helper()
	if err := h.client.Create(h.t.Context(), obj); err != nil {
		h.t.Fatal(err)
	}
}

func nodeClass() v1.NodeClassReference {
	return v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
}

// claim stores a claim with the requirements.
func (h *harness) claim(name string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	h.t.Helper()
	class := nodeClass()
	c := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-of-" + name),
			Labels:      map[string]string{v1.NodePoolLabelKey: "default"},
			Annotations: map[string]string{"example.com/note": "hello"},
			Finalizers:  []string{v1.TerminationFinalizer},
		},
		Spec: v1.NodeClaimSpec{
			NodeClassRef: &class, Requirements: requirements,
			Resources: v1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		},
	}
	h.create(c)
	return c
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// record stores the machine in the claim as the lifecycle controller does.
func (h *harness) record(c *v1.NodeClaim, m *cloud.Machine) {
	h.t.Helper()
	labels := m.Labels
	for k, v := range c.Labels {
		labels[k] = v
	}
	c.Labels = labels
	if err := h.client.Update(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
	c.Status.ProviderID, c.Status.Capacity, c.Status.Allocatable = m.ProviderID, m.Capacity, m.Allocatable
	h.condition(c, v1.LaunchedCondition)
}

func (h *harness) condition(c *v1.NodeClaim, name string) {
	h.t.Helper()
	c.Status.Conditions = append(c.Status.Conditions, v1.Condition{
		Type: name, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(h.clock.Now()), Reason: name,
	})
	if err := h.client.Status().Update(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

// launch takes a claim to where its machine is recorded but not booted.
func (h *harness) launch(c *v1.NodeClaim) *cloud.Machine {
	h.t.Helper()
	m, err := h.provider.Create(h.t.Context(), c)
	if err != nil {
		h.t.Fatal(err)
	}
	h.record(c, m)
	return m
}

func request(claim string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: claim}}
}

// reconcile runs Boot for a claim.
func (h *harness) reconcile(claim string) reconcile.Result {
	h.t.Helper()
	out, err := h.boot.Reconcile(h.t.Context(), request(claim))
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// settle runs Boot for every claim there is and every Node's.
func (h *harness) settle() {
	h.t.Helper()
	claims := &v1.NodeClaimList{}
	if err := h.client.List(h.t.Context(), claims); err != nil {
		h.t.Fatal(err)
	}
	for i := range claims.Items {
		h.reconcile(claims.Items[i].Name)
	}
	for _, node := range h.nodes() {
		for _, req := range claimOf(context.Background(), &node) {
			h.reconcile(req.Name)
		}
	}
}

func (h *harness) nodes() []corev1.Node {
	h.t.Helper()
	nodes := &corev1.NodeList{}
	if err := h.client.List(h.t.Context(), nodes); err != nil {
		h.t.Fatal(err)
	}
	return nodes.Items
}

// store creates or updates a claim with its status.
func (h *harness) store(c *v1.NodeClaim) {
	h.t.Helper()
	now := c.DeepCopy()
	now.ResourceVersion = ""
	err := h.client.Create(h.t.Context(), now)
	if apierrors.IsAlreadyExists(err) {
		old := &v1.NodeClaim{}
		if err := h.client.Get(h.t.Context(), client.ObjectKeyFromObject(c), old); err != nil {
			h.t.Fatal(err)
		}
		now.ResourceVersion = old.ResourceVersion
		err = h.client.Update(h.t.Context(), now)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	now.Status = c.Status
	if err := h.client.Status().Update(h.t.Context(), now); err != nil {
		h.t.Fatal(err)
	}
}
