// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/control/garbage"
	"karpenter/kube/meter"
)

// spec 65/144: an instance without a claim is ended, with its Node, once it is
// old enough; instances of others are never touched.
func TestGarbage(t *testing.T) {
	r := newRegion(t, nil)
	foreign, err := r.aws.StartInstance(awsfake.Start{Type: "m5.large"})
	must(t, err)
	key, other, pool, class := awsv1.ClusterNameTagKey, "another", awsv1.NodePoolTagKey, awsv1.NodeClassTagKey
	neighbour, err := r.aws.StartInstance(awsfake.Start{Type: "m5.large", Tags: []types.Tag{{Key: &key, Value: &other}, {Key: &pool, Value: &other}, {Key: &class, Value: &other}}})
	must(t, err)
	kept := r.launch(r.claim("kept"))
	lost := r.claim("lost")
	old := r.launch(lost)
	must(t, r.api.Delete(t.Context(), lost))
	for name, m := range map[string]*cloud.Machine{"node-kept": kept, "node-lost": old} {
		must(t, r.api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: m.ProviderID}}))
	}
	late := r.claim("late")
	young, err := r.Create(t.Context(), late)
	must(t, err)
	r.record(late, young)
	must(t, r.api.Delete(t.Context(), late))
	r.clock.Step(10 * time.Second)

	collector := &garbage.Reconciler{
		Client: r.api, Live: r.api, Provider: r.Provider, Clock: r.clock,
		Disruptions: meter.NewDisruptions(r.registry, r.api), EarlyRounds: 20,
	}
	round := func(want ...string) {
		t.Helper()
		result, err := collector.Reconcile(t.Context(), reconcile.Request{})
		must(t, err)
		check(t, "next round", result.RequeueAfter, 10*time.Second)
		slices.Sort(want)
		check(t, "running", r.running(), want)
	}
	id := func(m *cloud.Machine) string { return m.ProviderID[strings.LastIndex(m.ProviderID, "/")+1:] }
	round(foreign, neighbour, id(kept), id(young))
	node := &corev1.Node{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "node-lost"}, node); !apierrors.IsNotFound(err) {
		t.Errorf("the Node of the instance that was ended: %v", err)
	}
	must(t, r.api.Get(t.Context(), client.ObjectKey{Name: "node-kept"}, node))
	machines, err := r.List(t.Context())
	must(t, err)
	for _, m := range machines {
		if strings.HasSuffix(m.ProviderID, foreign) || strings.HasSuffix(m.ProviderID, neighbour) {
			t.Errorf("%s is listed", m.ProviderID)
		}
	}
	r.clock.Step(21 * time.Second)
	round(foreign, neighbour, id(kept))
}
