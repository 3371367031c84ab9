// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/events/eventstest"
	"karpenter/kube/meter"
)

// memory serves lists that are kept.
type memory struct {
	client.Reader
	pods  []corev1.Pod
	nodes []corev1.Node
}

func (m *memory) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1.PodList:
		l.Items = m.pods
	case *corev1.NodeList:
		l.Items = m.nodes
	}
	return nil
}

// large returns the registry of a process that leads in a cluster of 1,000
// nodes with 10 pods each, one of a DaemonSet, and a NodeClaim each.
func large(t testing.TB) *prometheus.Registry {
	m := &memory{}
	s := &kinds{handlers: map[string]toolscache.ResourceEventHandler{}}
	reg, clk, leads := prometheus.NewRegistry(), clocktesting.NewFakePassiveClock(start()), func() bool { return true }
	err := meter.NewConditions(reg, clk, leads, &eventstest.Recorder{}, []meter.Watched{
		{
			Object: &v1.NodeClaim{}, Of: meter.ConditionsOf, Group: v1.Group, Kind: "NodeClaim", Name: "nodeclaim", Twin: true,
			Keys: []string{v1.NodePoolLabelKey, "karpenter.k8s.aws/ec2nodeclass"},
		},
		{Object: &corev1.Node{}, Of: meter.NodeConditions, Kind: "Node", Name: "node", Keys: []string{v1.NodePoolLabelKey}},
	}).Watch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		node := worker(fmt.Sprintf("node-%d", i), "general")
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
		for _, c := range []corev1.NodeConditionType{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: c, Status: "False"})
		}
		for _, c := range []string{"Ready", "Launched", "Registered", "Initialized", "Consolidatable"} {
			claim.Status.Conditions = append(claim.Status.Conditions, v1.Condition{Type: c, Status: "True"})
		}
		m.nodes = append(m.nodes, *node)
		s.handlers["node"].OnAdd(node, true)
		s.handlers["nodeclaim"].OnAdd(claim, true)
		for j := range 10 {
			pod := runs(fmt.Sprintf("pod-%d-%d", i, j), node.Name, "cpu=100m memory=128Mi", "memory=256Mi")
			if j == 0 {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent"}}
			}
			m.pods = append(m.pods, *pod)
		}
	}
	meter.RegisterState(reg, m, leads)
	meter.RegisterNodes(reg, meter.Nodes{Reader: m, Leads: leads, Clock: clk, Labels: v1.DefaultLabels()})
	return reg
}

// TestSamples bounds what one scrape of a cluster of 1,000 nodes and 10,000
// pods reads about single objects: per node 3 amounts of what it has and 3 of
// what is requested of it, 3 of DaemonSets, 1 limit of each kind, 2 of overhead
// and its age; per pod 1; per condition 2, and as many twins of NodeClaims'.
func TestSamples(t *testing.T) {
	reg := large(t)
	for metric, want := range map[string]int{
		"karpenter_nodes_allocatable": 3000, "karpenter_nodes_total_pod_requests": 3000, "karpenter_nodes_total_daemon_requests": 3000,
		"karpenter_nodes_total_pod_limits": 1000, "karpenter_nodes_total_daemon_limits": 1000, "karpenter_nodes_system_overhead": 2000,
		"karpenter_nodes_current_lifetime_seconds": 1000, "karpenter_cluster_utilization_percent": 3, "karpenter_pods_state": 10_000,
		"operator_nodeclaim_status_condition_count": 5000, "operator_nodeclaim_status_condition_current_status_seconds": 5000,
		"operator_status_condition_count": 5000, "operator_status_condition_current_status_seconds": 5000,
		"operator_node_status_condition_count": 4000, "operator_node_status_condition_current_status_seconds": 4000,
	} {
		if got, err := testutil.GatherAndCount(reg, metric); got != want || err != nil {
			t.Errorf("%s has %d series, %v; want %d", metric, got, err, want)
		}
	}
	if all, err := testutil.GatherAndCount(reg); all != 52_003 || err != nil {
		t.Errorf("%d samples, %v; want 52,003", all, err)
	}
}

// BenchmarkScrape is what a scrape of a cluster of 1,000 nodes costs.
func BenchmarkScrape(b *testing.B) {
	reg := large(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
