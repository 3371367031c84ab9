// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	"karpenter/e2e/harness"
)

const patience = 5 * time.Minute // for anything, on a busy machine

// manifest is what a user of AKS applies.
const manifest = `
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec:
  imageFamily: Ubuntu
  tags: {team: shop/web}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.azure.com/sku-family, operator: In, values: [D, E]}
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
  disruption:
    consolidateAfter: 0s
    budgets: [{nodes: 100%}, {nodes: "0", reasons: [Drifted, Underutilized]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {karpenter.sh/nodepool: default, kubernetes.azure.com/mode: user}
      containers: [{name: web, image: web, resources: {requests: {cpu: 900m, memory: 1Gi}}}]
`

// machine is what azuresim tells of one.
type machine struct {
	Name, Machine, Zone string
	SKU                 struct{ Name string }
	Running             bool
}

// TestSimulatedAzure lets pods come: AKS machines are launched, they become nodes,
// pods run; a virtual machine is removed and the node replaced; pods, NodePool and
// AKSNodeClass go, and nothing is left in Azure.
func TestSimulatedAzure(t *testing.T) {
	c, err := harness.Start(t.Context(), harness.Options{Kubelets: true, Args: []string{"--pod-stop-delay=1s"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &scene{t, c, c.StartAzure(t), time.Now()}
	c.Apply(t, manifest)
	v := c.Watch(t)
	c.StartController(t, s.azure.Environment()...)

	v.Until("pods run", patience, s.running(v, 5))
	first := s.nodes(v)
	s.tell("5 pods run", first)
	for _, n := range first {
		if !strings.HasPrefix(n.Spec.ProviderID, "azure:///subscriptions/") || n.Labels["karpenter.azure.com/aksnodeclass"] != "default" {
			t.Errorf("node %s: provider ID %s, labels %v", n.Name, n.Spec.ProviderID, n.Labels)
		}
	}
	if m := s.machines(); len(m) != len(first) {
		t.Errorf("%d nodes, machines %v", len(first), m)
	}

	gone := first[0]
	i := slices.IndexFunc(s.machines(), func(m machine) bool { return m.Name == gone.Name })
	s.azure.Evict(t, s.machines()[i].Machine)
	v.Until("the evicted node is replaced", patience, func() string {
		if slices.ContainsFunc(s.nodes(v), func(n corev1.Node) bool { return n.Name == gone.Name }) {
			return "node " + gone.Name + " is still there"
		}
		return s.running(v, 5)()
	})
	s.tell("node "+gone.Name+" was evicted and is replaced", s.nodes(v))

	s.scale(0)
	v.Until("nodes are gone", patience, func() string {
		if n := len(s.nodes(v)); n > 0 {
			return fmt.Sprintf("%d nodes are left", n)
		}
		return ""
	})
	s.delete("NodePool", schema.GroupVersion{Group: "karpenter.sh", Version: "v1"})
	s.delete(v1beta1.Kind, v1beta1.GroupVersion())
	v.Until("nothing is left in Azure", patience, func() string {
		if left := s.machines(); len(left) > 0 {
			return fmt.Sprintf("machines %v", left)
		}
		return ""
	})
	s.tell("no pods, no nodes, no NodePool, no AKSNodeClass", nil)
	calls := map[string]int{}
	s.azure.Read(t, "/_azuresim/calls", &calls)
	t.Logf("calls: %v", calls)
	if made := calls["PUT machine"]; made <= len(first) {
		t.Errorf("%d machines were made, and %d of them at first: none replaces the evicted one", made, len(first))
	}
}

// scene is a test with its cluster and its Azure.
type scene struct {
	*testing.T
	*harness.Cluster
	azure *harness.Azure
	began time.Time
}

func (s *scene) machines() []machine {
	s.Helper()
	var out []machine
	s.azure.Read(s.T, "/_azuresim/vms", &out)
	return out
}

// tell logs what has come about, and the nodes.
func (s *scene) tell(what string, nodes []corev1.Node) {
	s.Helper()
	s.Logf("%4.0f s  %s", time.Since(s.began).Seconds(), what)
	for _, n := range nodes {
		s.Logf("        node %s  %s  %s  %s", n.Name, n.Labels[corev1.LabelInstanceTypeStable], n.Labels["karpenter.sh/capacity-type"], n.Labels[corev1.LabelTopologyZone])
	}
}

func (s *scene) scale(replicas int) {
	s.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := s.Client.Patch(s.Context(), d, patch); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) delete(kind string, of schema.GroupVersion) {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(of.WithKind(kind))
	object.SetName("default")
	if err := s.Client.Delete(s.Context(), object); err != nil {
		s.Fatal(err)
	}
}

// running waits for pods that run on nodes that are there.
func (s *scene) running(v *harness.View, want int) func() string {
	return func() string {
		nodes, n := map[string]bool{}, 0
		for _, node := range s.nodes(v) {
			nodes[node.Name] = true
		}
		pods := v.Pods("default")
		for _, p := range pods {
			if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && nodes[p.Spec.NodeName] {
				n++
			}
		}
		if n == want && len(pods) == want {
			return ""
		}
		return fmt.Sprintf("%d of %d pods run; want %d", n, len(pods), want)
	}
}

func (s *scene) nodes(v *harness.View) []corev1.Node {
	return slices.DeleteFunc(v.Nodes(), func(n corev1.Node) bool { return n.Labels["karpenter.sh/nodepool"] != "default" })
}
