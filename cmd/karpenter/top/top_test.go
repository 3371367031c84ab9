// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// claimed is a NodeClaim with its Node.
func claimed(name string) (*v1.NodeClaim, *corev1.Node) {
	labels := map[string]string{
		v1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "a", v1.CapacityTypeLabelKey: "spot",
	}
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(noon())}}
	c.Status.ProviderID, c.Status.NodeName = "x:///"+name, "node-"+name
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: labels}, Spec: corev1.NodeSpec{ProviderID: "x:///" + name}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return c, n
}

func prices(_, _, _ string) (float64, bool) { return 0.1, true }

// pod is a pod of the Deployment web.
func pod(name, node string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"pod-template-hash": "h"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-h", Controller: &yes}},
	}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	if p.Status.Phase = corev1.PodPending; node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	return p
}

// TestNarrowScreensShortenNames: names lose what all have in common, unless two nodes
// would look alike.
func TestNarrowScreensShortenNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		width int
		want  string
	}{
		{[]string{"ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"}, 80, "ip-10-0-0-1 "},
		{[]string{"ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"}, 160, "ip-10-0-0-1.ec2.internal "},
		{[]string{"a.one", "a.two"}, 80, "a.one "},
	} {
		s := Screen{Order: ByName, View: View{Now: noon()}}
		for _, name := range c.names {
			s.View.Nodes = append(s.View.Nodes, Node{Name: name, State: Ready, Since: noon()})
		}
		if text := Render(&s, c.width, 20, Style{}); !strings.Contains(text, "  "+c.want) {
			t.Errorf("%v at %d columns: %s", c.names, c.width, text)
		}
	}
}

// TestWhyNodesComeAndGo: a node says for which workload it was launched or what it
// replaces, and why it is removed.
func TestWhyNodesComeAndGo(t *testing.T) {
	event := func(kind, name, reason, message string) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name}, Reason: reason, Message: message}
	}
	marked := func(reason string) func(*v1.NodeClaim, *corev1.Node) {
		return func(c *v1.NodeClaim, n *corev1.Node) {
			c.Status.Conditions = []v1.Condition{{Type: v1.DisruptionReasonCondition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(noon())}}
			n.Spec.Taints = []corev1.Taint{{Key: v1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	nothing := func(*v1.NodeClaim, *corev1.Node) {}
	for _, c := range []struct {
		change func(*v1.NodeClaim, *corev1.Node)
		events []*corev1.Event
		want   string
	}{
		{nothing, nil, "runs web"},
		{nothing, []*corev1.Event{event("Pod", "web-1", "Nominated", "Pod should run on nodeclaim/c")}, "launched for web"},
		{nothing, []*corev1.Event{event("Pod", "web-1", "Nominated", "Pod should run on node/node-c, nodeclaim/c")}, "launched for web"},
		{nothing, []*corev1.Event{event("NodeClaim", "c", "DisruptionLaunching", "Launching NodeClaim: Drifted")}, "launched to replace nodes that were drifted"},
		{marked("Underutilized"), nil, "removed: its pods cost less elsewhere"},
		{marked("Empty"), nil, "removed: it was empty"},
		{marked("Drifted"), nil, "removed: it drifted from its NodePool or node class"},
		{marked("Empty"), []*corev1.Event{event("NodeClaim", "c", "SpotInterrupted", "")}, "removed: Spot interruption"},
		{func(c *v1.NodeClaim, _ *corev1.Node) { c.DeletionTimestamp = &metav1.Time{Time: noon()} }, nil, "deleted by a user or another program"},
	} {
		claim, node := claimed("c")
		c.change(claim, node)
		v := Of(&Objects{Claims: []*v1.NodeClaim{claim}, Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{pod("web-1", "node-c")}, Events: c.events}, prices, noon())
		if len(v.Nodes) != 1 || v.Nodes[0].Why != c.want || v.Nodes[0].Pods != 1 || v.Nodes[0].Used.MilliCPU != 1000 {
			t.Errorf("%+v, want one node with %q", v.Nodes, c.want)
		}
	}
}

// TestWhatHappened: launches, nodes that become ready, removals and pods are
// shown, causes before effects.
func TestWhatHappened(t *testing.T) {
	claim, node := claimed("c")
	launching := claim.DeepCopy()
	launching.Status.ProviderID, launching.Status.NodeName = "", ""
	removed := claim.DeepCopy()
	removed.DeletionTimestamp = &metav1.Time{Time: noon()}
	waiting, bound := pod("web-1", ""), pod("web-1", "node-c")
	steps := []*Objects{
		{},
		{Pods: []*corev1.Pod{waiting}},
		{Pods: []*corev1.Pod{waiting}, Claims: []*v1.NodeClaim{launching}},
		{Pods: []*corev1.Pod{waiting}, Claims: []*v1.NodeClaim{claim}},
		{Pods: []*corev1.Pod{bound}, Claims: []*v1.NodeClaim{claim}, Nodes: []*corev1.Node{node}},
		{Claims: []*v1.NodeClaim{removed}, Nodes: []*corev1.Node{node}},
		{},
	}
	var got []string
	before := Of(steps[0], prices, noon())
	for _, o := range steps[1:] {
		after := Of(o, prices, noon())
		for _, e := range Between(&before, &after) {
			got = append(got, string(e.Kind)+" "+e.Text)
		}
		before = after
	}
	want := []string{
		"pods web: 1 waiting",
		"launch 1 node (now 1 at $0.100/h): 1 × m5.large spot a $0.1000/h",
		"pods web: 1 running",
		"ready 1 node (1 of 1): 1 × m5.large spot a $0.1000/h",
		"pods web: no pods",
		"remove 1 node: 1 × m5.large spot a $0.1000/h — deleted by a user or another program",
		"gone 1 node (now 0 at $0.000/h): 1 × m5.large spot a $0.1000/h",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestScreenFits: no line is wider than the terminal and no picture higher, and the
// selected node is always in sight.
func TestScreenFits(t *testing.T) {
	o := &Objects{}
	for i := range 60 {
		claim, node := claimed(strings.Repeat("x", i%20) + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		o.Claims, o.Nodes = append(o.Claims, claim), append(o.Nodes, node)
	}
	for _, size := range [][2]int{{40, 10}, {80, 24}, {120, 30}, {160, 40}, {250, 80}} {
		for selected := range 60 {
			s := Screen{Title: "test", View: Of(o, prices, noon()), Order: ByName, Keys: true, Selected: selected}
			picture := Render(&s, size[0], size[1], Style{Unicode: true})
			lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
			for _, l := range lines {
				if n := len([]rune(l)); n > size[0] {
					t.Fatalf("%v: %d columns: %s", size, n, l)
				}
			}
			if len(lines) > size[1] || size[1] >= 24 && strings.Count(picture, "▸") != 1 {
				t.Fatalf("%v, node %d selected: %d lines\n%s", size, selected, len(lines), picture)
			}
		}
	}
}

// TestUnknownPrices: a price that is not known is not shown as nothing.
func TestUnknownPrices(t *testing.T) {
	claim, node := claimed("c")
	unknown := func(_, _, _ string) (float64, bool) { return 0, false }
	before := Of(&Objects{}, unknown, noon())
	after := Of(&Objects{Claims: []*v1.NodeClaim{claim}, Nodes: []*corev1.Node{node}}, unknown, noon())
	said := Standing(&after)
	for _, e := range Between(&before, &after) {
		said += "\n" + e.Text
	}
	var head string
	for _, l := range (&Screen{View: after}).head(80, Style{}) {
		head += plainText(l) + "\n"
	}
	for _, text := range []string{said, head} {
		if strings.Contains(text, "$0") || !strings.Contains(text, "$?/h") {
			t.Errorf("a price of nothing is shown:\n%s", text)
		}
	}
}
