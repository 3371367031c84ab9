// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/cloud/kwok"
	"karpenter/control/lifecycle"
	"karpenter/kube/events"
	"karpenter/kube/join"
	"karpenter/kube/meter"
)

// machines makes Nodes of NodeClaims with the controllers that really do it,
// on an API in memory.
type machines struct {
	ctx       context.Context
	client    client.Client
	boot      *kwok.Boot
	lifecycle *lifecycle.Reconciler
	launched  int
}

func allTypes(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newMachines(t *testing.T, types *runtime.Scheme, catalogue *kwok.Catalogue) *machines {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(types).
		WithStatusSubresource(&v1.NodeClaim{}, &kwokv1alpha1.KWOKNodeClass{}).
		WithObjects(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: nodeClass().Name}}).
		WithIndex(&corev1.Node{}, join.NodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) []string { return []string{o.(*v1.NodeClaim).Status.ProviderID} }).
		WithIndex(&corev1.Pod{}, join.PodNodeName, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		Build()
	clock := clocktesting.NewFakePassiveClock(now())
	config := kwok.Config{Client: c, Live: c, Catalogue: catalogue, Clock: clock}
	registry := prometheus.NewRegistry()
	return &machines{
		ctx: ctrllog.IntoContext(t.Context(), logr.Discard()), client: c, boot: kwok.NewBoot(config),
		lifecycle: &lifecycle.Reconciler{
			Client: c, Provider: kwok.New(config), Clock: clock, Recorder: nobody{}, Health: nobody{},
			Metrics: lifecycle.NewMetrics(registry), Disruptions: meter.NewDisruptions(registry, c),
		},
	}
}

// nobody wants to know.
type nobody struct{}

func (nobody) Publish(...events.Event)              {}
func (nobody) Succeeded(*v1.NodeClaim)              {}
func (nobody) Failed(*v1.NodeClaim, string, string) {}

// start launches the claim's machine and returns its Node as it is once
// everything has started, or nil when nothing could be launched.
func (m *machines) start(claim *v1.NodeClaim) (*corev1.Node, error) {
	m.launched++
	claim.Name = fmt.Sprintf("%sclaim-%d", claim.GenerateName, m.launched)
	claim.UID, claim.CreationTimestamp = types.UID("uid-"+claim.Name), metav1.NewTime(now())
	if err := m.client.Create(m.ctx, claim); err != nil {
		return nil, err
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: claim.Name}}
	for _, r := range []reconcile.Reconciler{m.lifecycle, m.boot, m.lifecycle} {
		if _, err := r.Reconcile(m.ctx, request); err != nil {
			return nil, err
		}
	}
	nodes := &corev1.NodeList{}
	if err := m.client.List(m.ctx, nodes); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.OwnerReferences[0].Name == claim.Name })
	if i < 0 {
		return nil, nil
	}
	node := &nodes.Items[i]
	startup := v1.CoreTaints(claim.Spec.StartupTaints)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(startup, t) })
	if err := m.client.Update(m.ctx, node); err != nil {
		return nil, err
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := m.client.Status().Update(m.ctx, node); err != nil {
		return nil, err
	}
	if _, err := m.lifecycle.Reconcile(m.ctx, request); err != nil {
		return nil, err
	}
	if err := m.client.Get(m.ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return nil, err
	}
	if node.Labels[v1.NodeInitializedLabelKey] != "true" {
		return nil, fmt.Errorf("node %s is not initialized", node.Name)
	}
	return node, nil
}
