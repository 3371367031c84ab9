// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// stopwatch is a clock that stands still until it is moved.
type stopwatch struct{ at time.Time }

func (s *stopwatch) now() time.Time { return s.at }

func newTestLedger() (*ledger, *stopwatch) {
	watch := &stopwatch{time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	return newLedger(watch.now, Prices{{"m5.xlarge", "us-east-1a", "spot"}: 0.07}), watch
}

// claimObject is a NodeClaim as the API server shows it; launched, if it has a provider id.
func claimObject(name, providerID string) *unstructured.Unstructured {
	status := map[string]any{}
	if providerID != "" {
		status = map[string]any{
			"providerID":  providerID,
			"capacity":    map[string]any{"cpu": "4", "memory": "8Gi"},
			"allocatable": map[string]any{"cpu": "3920m", "memory": "7Gi"},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": name, "labels": map[string]any{
			poolLabel: "general", corev1.LabelInstanceTypeStable: "m5.xlarge", corev1.LabelTopologyZone: "a",
			capacityTypeLabel: "spot", priceLabel: "0.500000",
		}},
		"status": status,
	}}
}

func nodeObject(name, providerID, claim string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(1, 0), Labels: map[string]string{
			poolLabel: "general", corev1.LabelInstanceTypeStable: "m5.xlarge", corev1.LabelTopologyZone: "a",
			capacityTypeLabel: "spot", priceLabel: "0.500000", corev1.LabelHostname: claim,
		}},
		Spec: corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3920m"), "memory": resource.MustParse("7Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		},
	}
}

// TestInstanceLife follows one machine, seen in all orders that watches may show it in: it is one machine throughout.
func TestInstanceLife(t *testing.T) {
	l, _ := newTestLedger()
	fresh := nodeObject("n1", "kwok://n1", "c1", corev1.ConditionFalse)
	fresh.Spec.Taints = []corev1.Taint{{Key: unregisteredTaint}}
	going := nodeObject("n1", "kwok://n1", "c1", corev1.ConditionTrue)
	going.Spec.Taints = []corev1.Taint{{Key: disruptedTaint}}
	for _, c := range []struct {
		what string
		do   func()
		want string
	}{
		{"claimed", func() { l.putClaim(readClaim(claimObject("c1", ""))) }, "c1 launching, node , $0.00/h, 0 bought, used cpu 0"},
		{"node seen before the launch is", func() { l.putNode(readNode(fresh)) }, "c1 booting, node n1, $0.50/h, 1 bought, used cpu 4"},
		{"launched", func() { l.putClaim(readClaim(claimObject("c1", "kwok://n1"))) }, "c1 booting, node n1, $0.50/h, 1 bought, used cpu 4"},
		{"ready", func() { l.putNode(readNode(nodeObject("n1", "kwok://n1", "c1", corev1.ConditionTrue))) }, "c1 ready, node n1, $0.50/h, 1 bought, used cpu 4"},
		{"disrupted", func() { l.putNode(readNode(going)) }, "c1 removing, node n1, $0.50/h, 1 bought, used cpu 0"},
		{"claim gone first", func() { l.dropClaim("c1") }, "c1 removing, node n1, $0.50/h, 1 bought, used cpu 0"},
		{"gone", func() { l.dropNode("n1") }, "none, $0.00/h, 1 bought"},
	} {
		l.putPool(Pool{Name: "general", Ready: true})
		c.do()
		if got := describe(l.view()); got != c.want {
			t.Errorf("%s: %s; want %s", c.what, got, c.want)
		}
	}
}

// TestNodesWithoutProviderID: kubelets of Azure register Nodes that the cloud's controller completes a little later. Until
// then they are counted with their claims, once.
func TestNodesWithoutProviderID(t *testing.T) {
	l, _ := newTestLedger()
	l.putPool(Pool{Name: "general", Ready: true})
	l.putClaim(readClaim(claimObject("c1", "azure://vm")))
	l.putNode(readNode(nodeObject("aks-c1", "", "aks-c1", corev1.ConditionFalse)))
	if got, want := describe(l.view()), "c1 booting, node , $0.50/h, 1 bought, used cpu 4"; got != want || len(l.view().Machines) != 1 {
		t.Errorf("registered: %s; want %s", got, want)
	}
	l.putNode(readNode(nodeObject("aks-c1", "azure://vm", "aks-c1", corev1.ConditionTrue)))
	if got, want := describe(l.view()), "c1 ready, node aks-c1, $0.50/h, 1 bought, used cpu 4"; got != want {
		t.Errorf("completed: %s; want %s", got, want)
	}
}

func describe(v View) string {
	bought := 0
	for _, p := range v.Bought {
		bought += p.Count
	}
	if len(v.Machines) == 0 {
		return fmt.Sprintf("none, $%.2f/h, %d bought", v.Price, bought)
	}
	m := v.Machines[0]
	cpu := v.Pools[0].Usage["cpu"]
	return fmt.Sprintf("%s %s, node %s, $%.2f/h, %d bought, used cpu %s", m.Name, m.State, m.Node, v.Price, bought, cpu.String())
}

// TestPricesAreLookedUp: where a machine does not say its own.
func TestPricesAreLookedUp(t *testing.T) {
	l, _ := newTestLedger()
	for _, name := range []string{"c1", "c2"} {
		c := claimObject(name, "aws:///us-east-1a/i-"+name)
		labels := c.GetLabels()
		delete(labels, priceLabel)
		labels[corev1.LabelTopologyZone] = map[string]string{"c1": "us-east-1a", "c2": "us-east-1b"}[name]
		c.SetLabels(labels)
		l.putClaim(readClaim(c))
	}
	if v := l.view(); v.Price != 0.07 || len(v.Bought) != 2 {
		t.Errorf("$%v/h, %+v; want the price of one of two", v.Price, v.Bought)
	}
}

// TestPeaksOutliveTheirCause: a peak between two views is in the second one.
func TestPeaksOutliveTheirCause(t *testing.T) {
	l, watch := newTestLedger()
	l.putPool(Pool{Name: "general"})
	for i := range 3 {
		l.putClaim(readClaim(claimObject(fmt.Sprint("c", i), fmt.Sprint("kwok://n", i))))
	}
	watch.at = watch.at.Add(30 * time.Minute)
	for i := range 3 {
		l.dropClaim(fmt.Sprint("c", i))
	}
	watch.at = watch.at.Add(time.Hour)
	v := l.view()
	cpu, nodes := v.Pools[0].Peak["cpu"], v.Pools[0].Peak["nodes"]
	got := fmt.Sprintf("cpu %s, nodes %s, peak $%.2f/h, now $%.2f/h, spent $%.2f, bought %d × %s",
		cpu.String(), nodes.String(), v.PeakPrice, v.Price, v.Spent, v.Bought[0].Count, v.Bought[0].Type)
	if want := "cpu 12, nodes 3, peak $1.50/h, now $0.00/h, spent $0.75, bought 3 × m5.xlarge"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPodsAreCounted(t *testing.T) {
	l, _ := newTestLedger()
	l.putNode(readNode(nodeObject("n1", "kwok://n1", "c1", corev1.ConditionTrue)))
	for i, p := range []struct {
		node  string
		phase corev1.PodPhase
		end   bool
	}{
		{"", corev1.PodPending, false}, {"", corev1.PodPending, false}, {"n1", corev1.PodPending, false},
		{"n1", corev1.PodRunning, false}, {"n1", corev1.PodSucceeded, false}, {"n1", corev1.PodRunning, true},
	} {
		pod := podObject(fmt.Sprint("p", i), p.node, p.phase)
		if p.end {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		l.putPod("default/"+pod.Name, readPod(pod))
	}
	l.putRefusal("p0", "limits")
	l.putRefusal("p3", "limits") // it runs by now
	v := l.view()
	w := v.Workload("web")
	got := fmt.Sprintf("%d waiting %d starting %d running %d finished %d stopping, refused %v; on the node %d pods, cpu %d",
		w.Waiting, w.Starting, w.Running, w.Finished, w.Stopping, w.Refused, v.Machines[0].Pods, v.Machines[0].Used.MilliCPU)
	want := "2 waiting 1 starting 1 running 1 finished 1 stopping, refused map[limits:1]; on the node 3 pods, cpu 1500"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i := range 6 {
		name := fmt.Sprint("p", i)
		l.dropPod("default/"+name, pod{uid: types.UID(name)})
	}
	if v := l.view(); len(v.Workloads) != 0 || len(l.refused) != 0 {
		t.Errorf("without pods: %v, refused %v", v.Workloads, l.refused)
	}
}

func podObject(name, node string, phase corev1.PodPhase) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"pod-template-hash": "5d4f8c", "app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d4f8c", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")}},
		}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// TestTrimmedPodsReadTheSame: the transform drops nothing that is read.
func TestTrimmedPodsReadTheSame(t *testing.T) {
	pod := podObject("p", "n1", corev1.PodRunning)
	always := corev1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "sidecar", RestartPolicy: &always,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
	}}
	pod.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("10m")}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: evictedReason},
	}
	want := readPod(pod)
	if want.requests != (Amount{MilliCPU: 510, Memory: 1 << 30}) || want.workload != "web" || want.target != evictedReason {
		t.Errorf("read %+v", want)
	}
	trimmed, err := trimPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if got := readPod(trimmed.(*corev1.Pod)); got != want {
		t.Errorf("trimmed %+v, whole %+v", got, want)
	}
}

func TestPoolsAreRead(t *testing.T) {
	pool := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "general"},
		"spec": map[string]any{
			"limits": map[string]any{"cpu": int64(80), "memory": "320Gi"},
			"disruption": map[string]any{"budgets": []any{
				map[string]any{"nodes": "10%"},
				map[string]any{"nodes": "1", "reasons": []any{"Empty"}},
				map[string]any{"nodes": "0", "schedule": "@daily", "duration": "1h"},
			}},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "NodeClassNotFound", "message": "NodeClass not found"}}},
	}}
	p := readPool(pool)
	if cpu, memory := p.Limits["cpu"], p.Limits["memory"]; cpu.Value() != 80 || memory.Value() != 320<<30 {
		t.Errorf("limits %v", p.Limits)
	}
	if !slices.Equal(p.Budgets, []string{"10%"}) {
		t.Errorf("budgets %v", p.Budgets)
	}
	if p.Ready || p.Reason != "NodeClass not found" {
		t.Errorf("ready %v, reason %q", p.Ready, p.Reason)
	}
}

// TestChangesWakeWaiters: a change after next was asked for closes the channel, even before View.
func TestChangesWakeWaiters(t *testing.T) {
	l, _ := newTestLedger()
	changed := l.next()
	select {
	case <-changed:
		t.Fatal("woken by nothing")
	default:
	}
	l.putPool(Pool{Name: "general"})
	select {
	case <-changed:
	default:
		t.Fatal("not woken")
	}
}
