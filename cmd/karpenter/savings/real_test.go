// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/scheme"
)

// dump reads objects written as YAML.
func dump(t *testing.T, text string) *Cluster {
	t.Helper()
	c := &Cluster{}
	if err := c.Read(strings.NewReader(text), scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	return c
}

func nodeText(name, instanceType, more string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {node.kubernetes.io/instance-type: %s, topology.kubernetes.io/region: us-east-1, topology.kubernetes.io/zone: us-east-1a%s}}
spec: {providerID: "aws:///us-east-1a/i-0"}
status: {capacity: {cpu: "2", memory: 8Gi, pods: "35"}, allocatable: {cpu: 1930m, memory: 7Gi, pods: "35"}}
`, name, instanceType, more)
}

func podText(name, node, owner, resources string) string {
	kind, of, _ := strings.Cut(owner, "/")
	group := map[string]string{"Node": "v1", "Advanced": "apps.kruise.io/v1alpha1"}[kind]
	if group == "" {
		group = "apps/v1"
	}
	if kind == "Advanced" {
		kind = "DaemonSet"
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: a, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: u, controller: true}]}
spec: {nodeName: %s, containers: [{name: c, image: i, resources: %s}]}
status: {phase: Running}
`, name, group, kind, of, node, resources)
}

// TestSavingsKeepTheGPU: pods with GPUs or accelerators stay on the model that they
// run on, since a cheaper one has less memory, or needs another program.
func TestSavingsKeepTheGPU(t *testing.T) {
	for instanceType, resources := range map[string]string{
		"g6e.12xlarge":  `{limits: {nvidia.com/gpu: 2}, requests: {cpu: 22, memory: 173Gi}}`,
		"inf2.24xlarge": `{limits: {aws.amazon.com/neuron: 2}, requests: {cpu: 4, memory: 20Gi}}`,
	} {
		family, _, _ := strings.Cut(instanceType, ".")
		r := report(t, dump(t, nodeText("node", instanceType, "")+podText("p", "node", "ReplicaSet/r", resources)), options())
		for _, p := range r.Plans {
			if p.Unplaced > 0 || len(p.Buy) != 1 || !strings.HasPrefix(p.Buy[0].InstanceType, family+".") {
				t.Errorf("plan %s launches %+v (%d pods without a place), want %s", p.Name, p.Buy, p.Unplaced, family)
			}
		}
	}
}

// TestSavingsOfTinyInstances: no plan launches sizes below medium unless the cluster
// has nodes of them.
func TestSavingsOfTinyInstances(t *testing.T) {
	pod := podText("p", "node", "ReplicaSet/r", "{requests: {cpu: 10m, memory: 10Mi}}")
	tiny := func(instanceType string) (n int) {
		for _, p := range report(t, dump(t, nodeText("node", instanceType, "")+pod), options()).Plans {
			for _, b := range p.Buy {
				for _, size := range []string{".nano", ".micro", ".small"} {
					if strings.HasSuffix(b.InstanceType, size) {
						n++
					}
				}
			}
		}
		return n
	}
	if n := tiny("t3.large"); n > 0 {
		t.Errorf("%d plans launch tiny instances", n)
	}
	if n := tiny("t3.small"); n == 0 {
		t.Error("no plan launches an instance as small as the node that is there")
	}
}

// TestSavingsWithoutDaemonSets: if a dump lacks the DaemonSets, new nodes run their
// pods all the same; also those of OpenKruise, and static pods of all nodes.
func TestSavingsWithoutDaemonSets(t *testing.T) {
	const daemon = "{requests: {cpu: 300m, memory: 1Gi}}"
	for _, owner := range []string{"DaemonSet/agent", "Advanced/agent", "Node/kubelet"} {
		text := ""
		for _, n := range []string{"n1", "n2"} {
			text += nodeText(n, "m5.large", "") + podText("web-"+n, n, "ReplicaSet/web", "{requests: {cpu: 900m, memory: 1Gi}}") + podText("agent-"+n, n, owner, daemon)
		}
		r := report(t, dump(t, text), options())
		if r.Now.Pods != 2 {
			t.Errorf("%s: %d pods, want 2", owner, r.Now.Pods)
		}
		// 2 × 900m + 300m: one node of 2 CPUs has no capacity for both and the agent.
		c := dump(t, text)
		daemons := c.daemonSets(nodesByName(c))
		if len(daemons) != 1 || daemons[0].Name != "agent" || daemons[0].Spec.Template.Spec.NodeName != "" {
			t.Errorf("%s: daemons %+v", owner, daemons)
		}
		bare := &Cluster{Nodes: c.Nodes}
		for _, p := range c.Pods {
			if strings.HasPrefix(p.Name, "web") {
				bare.Pods = append(bare.Pods, p)
			}
		}
		if without := report(t, bare, options()); without.Plans[0].Cost >= r.Plans[0].Cost {
			t.Errorf("%s: the plan costs $%v/h with its pods and $%v/h without them", owner, r.Plans[0].Cost, without.Plans[0].Cost)
		}
	}
	// A static pod of one node is not one of new nodes.
	c := dump(t, nodeText("n1", "m5.large", "")+nodeText("n2", "m5.large", "")+podText("etcd-n1", "n1", "Node/n1", daemon))
	if daemons := c.daemonSets(nodesByName(c)); len(daemons) > 0 {
		t.Errorf("daemons %+v", daemons)
	}
}

// TestSavingsAssumeRequests: containers without a request count as what is assumed,
// and the report names that.
func TestSavingsAssumeRequests(t *testing.T) {
	text := nodeText("node", "m5.large", "")
	for i := range 20 {
		text += podText(fmt.Sprintf("p%d", i), "node", "ReplicaSet/r", "{}")
	}
	o := options()
	nothing := report(t, dump(t, text), o)
	o.Missing = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	something := report(t, dump(t, text), o)
	for i := range nothing.Plans {
		if something.Plans[i].Cost < 3*nothing.Plans[i].Cost {
			t.Errorf("plan %s costs $%v/h with requests assumed, and $%v/h without", nothing.Plans[i].Name, something.Plans[i].Cost, nothing.Plans[i].Cost)
		}
	}
	for want, r := range map[string]Report{"--assume-requests": nothing, "20 pods without CPU or memory requests, counted as 500m CPU and 1Gi memory per container": something} {
		var b strings.Builder
		if err := r.Text(&b, 80); err != nil || !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("%v: the report does not say %q:\n%s", err, want, b.String())
		}
	}
}

// TestSavingsOfSeveralRegions: prices are of one region, and the report says which.
// Nodes outside AWS are left out.
func TestSavingsOfSeveralRegions(t *testing.T) {
	pod := podText("p", "node", "ReplicaSet/r", "{requests: {cpu: 10m, memory: 10Mi}}")
	two := nodeText("node", "m5.large", "") + strings.ReplaceAll(nodeText("m", "m5.large", ""), "us-east-1", "eu-west-1")
	r := report(t, dump(t, two+pod), options())
	if said := strings.Join(r.Notes, "\n"); !strings.Contains(said, "the nodes are in 2 regions (eu-west-1, us-east-1); all are priced as in us-east-1") {
		t.Errorf("notes:\n%s", said)
	}
	hybrid := nodeText("node", "unknown", ", eks.amazonaws.com/compute-type: hybrid")
	if _, err := Of(dump(t, hybrid+pod), options()); err == nil || !strings.Contains(err.Error(), "1 node outside AWS (EKS Hybrid Nodes)") {
		t.Errorf("error is %v", err)
	}
}

// TestSavingsOfMoreChoice: a plan that may use more instance types never costs more
// than the one before it.
func TestSavingsOfMoreChoice(t *testing.T) {
	dear := Plan{Name: "with Spot and Arm", Nodes: 3, Cost: 3, Bound: 1, Buy: []Buy{{Count: 3}}}
	cheap := Plan{Name: "with Spot", Nodes: 2, Cost: 2, Bound: 1.5, Buy: []Buy{{Count: 2}}}
	if got := dear.orLess(cheap); got.Name != dear.Name || got.Cost != 2 || got.Nodes != 2 || got.Bound != 1 || got.Buy[0].Count != 2 {
		t.Errorf("got %+v", got)
	}
	cheap.Unplaced = 1
	if got := dear.orLess(cheap); got.Cost != 3 {
		t.Errorf("a plan without a place for a pod is taken: %+v", got)
	}
}
