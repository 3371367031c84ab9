// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
	"karpenter/model"
)

// amounts reads "cpu=1 memory=2Gi".
func amounts(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, field := range strings.Fields(text) {
		name, q, _ := strings.Cut(field, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(q)
	}
	return out
}

// worker returns a node that was made at the start.
func worker(name, pool string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start()), Labels: map[string]string{
			model.LabelZone: "z-1", model.LabelInstanceType: "m.large", "example.com/Instance-CPU": "4",
		}},
		Status: corev1.NodeStatus{
			Capacity: amounts("cpu=4 memory=8Gi pods=10 hugepages-2Mi=0"), Allocatable: amounts("cpu=3500m memory=7Gi pods=10 hugepages-2Mi=0"),
		},
	}
	if pool != "" {
		n.Labels[v1.NodePoolLabelKey] = pool
	}
	return n
}

// runs returns a pod on the node.
func runs(name, node, requests, limits string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts(requests), Limits: amounts(limits)},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// TestNodes covers spec 50/11, and of spec 50/14 that what is gone or has other
// labels leaves no series behind: nothing is kept between two scrapes.
func TestNodes(t *testing.T) {
	daemon := runs("agent", "ours", "cpu=100m memory=64Mi", "memory=128Mi")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1"}}
	ended := runs("job", "ours", "cpu=1", "")
	ended.Status.Phase = corev1.PodSucceeded
	objects := fake.NewClientBuilder().WithObjects(
		worker("ours", "general"), runs("web", "ours", "cpu=600m memory=1Gi", "cpu=1"), daemon, ended, runs("waiting", "", "cpu=1", ""),
	).Build()
	reg, clk := prometheus.NewRegistry(), clocktesting.NewFakePassiveClock(start().Add(time.Minute))
	leads := false
	meter.RegisterNodes(reg, meter.Nodes{
		Reader: objects, Leads: func() bool { return leads }, Clock: clk,
		Labels: v1.DefaultLabels().With(v1.Labels{WellKnown: sets.New("example.com/Instance-CPU")}),
	})
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("without a lead: %d series, %v", n, err)
	}
	leads = true
	const of = `instance_cpu="4",instance_type="m.large",managed="true",node_name="ours",nodepool="general"`
	const zone = `zone="z-1"`
	compare := func(metric string, want ...string) {
		t.Helper()
		var text strings.Builder
		for _, w := range want {
			fmt.Fprintf(&text, "%s{%s} %s\n", metric, strings.Split(w, " ")[0], strings.Split(w, " ")[1])
		}
		got, err := seriesOf(reg, metric)
		if err != nil || got != text.String() {
			t.Errorf("got %v\n%swant\n%s", err, got, text.String())
		}
	}
	series := func(resource, value string) string {
		return of + `,resource_type="` + resource + `",` + zone + " " + value
	}
	compare("karpenter_nodes_allocatable", series("cpu", "3.5"), series("memory", "7516192768"), series("pods", "10"))
	compare("karpenter_nodes_total_pod_requests", series("cpu", "0.7"), series("memory", "1140850688"), series("pods", "2"))
	compare("karpenter_nodes_total_pod_limits", series("cpu", "1"), series("memory", "134217728"))
	compare("karpenter_nodes_total_daemon_requests", series("cpu", "0.1"), series("memory", "67108864"), series("pods", "1"))
	compare("karpenter_nodes_total_daemon_limits", series("memory", "134217728"))
	compare("karpenter_nodes_system_overhead", series("cpu", "0.5"), series("memory", "1073741824"))
	compare("karpenter_nodes_current_lifetime_seconds", of+","+zone+" 60")
	compare("karpenter_cluster_utilization_percent",
		`resource_type="cpu" 20`, `resource_type="memory" 15.178571428571429`, `resource_type="pods" 20`)

	node := worker("ours", "")
	node.Labels[model.LabelZone] = "z-2"
	if err := objects.Delete(t.Context(), worker("ours", "")); err != nil {
		t.Fatal(err)
	}
	compare("karpenter_nodes_allocatable")
	compare("karpenter_cluster_utilization_percent")
	if err := objects.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	compare("karpenter_nodes_current_lifetime_seconds",
		`instance_cpu="4",instance_type="m.large",managed="false",node_name="ours",zone="z-2" 60`)
}

// seriesOf returns the series of a gauge in the text format, without comments.
func seriesOf(reg prometheus.Gatherer, metric string) (string, error) {
	families, err := reg.Gather()
	var out strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != metric {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&out, "%s{%s} %s\n", metric, strings.Join(labels, ","), strconv.FormatFloat(m.GetGauge().GetValue(), 'f', -1, 64))
		}
	}
	return out.String(), err
}

// TestNodesUnreadable shows that half of the truth is not published.
func TestNodesUnreadable(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	meter.RegisterNodes(reg, meter.Nodes{
		Reader: broken{}, Leads: func() bool { return true }, Clock: clocktesting.NewFakePassiveClock(start()), Labels: v1.DefaultLabels(),
	})
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}

// broken cannot be read.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no list")
}
