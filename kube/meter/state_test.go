// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
	"karpenter/model"
)

// cluster returns a pod on a node of a pool, one on a node of none, and one
// without a node.
func cluster() []client.Object {
	pod := func(name, node string, phase corev1.PodPhase, is ...corev1.PodConditionType) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		for _, condition := range is {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
		}
		return p
	}
	owned := pod("owned", "ours", corev1.PodRunning, corev1.PodScheduled, corev1.PodReady)
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1"}, {APIVersion: "v1", Kind: "Other", Name: "x", UID: "2"},
	}
	return []client.Object{
		owned, pod("starting", "foreign", corev1.PodPending, corev1.PodScheduled), pod("waiting", "", corev1.PodPending),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ours", Labels: map[string]string{
			v1.NodePoolLabelKey: "general", model.LabelZone: "z-1", model.LabelArch: "arm64",
			model.LabelCapacityType: model.Spot, model.LabelInstanceType: "m.large",
		}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: map[string]string{model.LabelZone: "z-2"}}},
	}
}

// TestState covers karpenter_pods_state of spec 50 §5. A process that does not
// lead publishes nothing, nor does one that cannot read.
func TestState(t *testing.T) {
	leads, fails := false, false
	reader := fake.NewClientBuilder().WithObjects(cluster()...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ofNodes := list.(*corev1.NodeList); fails && ofNodes {
				return errors.New("no nodes")
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	reg := prometheus.NewPedanticRegistry()
	meter.RegisterState(reg, reader, func() bool { return leads })
	check := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	check("")
	leads = true
	check(`
# HELP karpenter_pods_state 1 for every pod, with what it is and where in its labels.
# TYPE karpenter_pods_state gauge
karpenter_pods_state{arch="arm64",capacity_type="spot",instance_type="m.large",managed="true",name="owned",namespace="shop",node="ours",nodepool="general",owner="/apis/apps/v1/namespaces/shop/replicasets/web",phase="Running",ready="true",scheduled="true",zone="z-1"} 1
karpenter_pods_state{arch="",capacity_type="",instance_type="",managed="false",name="starting",namespace="shop",node="foreign",nodepool="",owner="",phase="Pending",ready="false",scheduled="true",zone="z-2"} 1
karpenter_pods_state{arch="",capacity_type="",instance_type="",managed="false",name="waiting",namespace="shop",node="",nodepool="",owner="",phase="Pending",ready="false",scheduled="false",zone=""} 1
`)
	fails = true
	check("")
}
