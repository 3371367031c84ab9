// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/plan"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// cluster is one as the controller knows it: three nodes of a NodePool, of which
// two run a pod, and pods that wait.
type cluster struct {
	*world.World
	convert convert.Converter
	now     time.Time
}

func newCluster(pool *v1.NodePool) cluster {
	axis := model.NewAxis()
	c := cluster{
		convert: convert.Converter{
			Axis: axis, Labels: v1.DefaultLabels().With(awsv1.Labels()),
			Manages: func(*v1.NodeClassReference) bool { return true },
		},
		now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}
	c.World = world.New(axis, c.convert.WellKnown())
	c.pool(pool)
	types := "type small cpu=2 mem=8Gi zones=a on-demand=0.1 spot=0.04\ntype arm cpu=2 mem=8Gi zones=a arch=arm64 on-demand=0.08 spot=0.03\n"
	s, err := scenario.Parse(strings.NewReader(types + "pool general\n"))
	if err != nil {
		panic(err) // the text is ours
	}
	c.SetTypes(pool.Name, s.Pools[0].Types)
	for i, name := range []string{"a", "b", "c"} {
		c.machine(pool, name, time.Duration(i+1)*time.Minute, false)
	}
	for name, node := range map[string]string{"one": "a", "two": "c", "waits": "", "too": ""} {
		shape := &model.Shape{Key: "cpu=1200m", Requests: model.Resources{}.With(model.CPU, 1200).With(model.Pods, 1)}
		c.SetPod(world.Pod{
			Namespace: "default", Name: name, UID: "default/" + name, Shape: shape, Node: node,
			Pending: node == "", Reschedulable: true, EvictionCost: 1,
		})
	}
	return c
}

// pool has the controller see the NodePool, ready.
func (c cluster) pool(p *v1.NodePool) {
	p = p.DeepCopy()
	p.Status.Conditions = []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue}}
	known, _ := c.convert.Pool(p)
	c.SetPool(known)
}

// machine has the controller see a node that has been quiet for so long, and that
// a NodeClaim of the pool is.
func (c cluster) machine(pool *v1.NodePool, name string, quiet time.Duration, drifted bool) {
	labels := map[string]string{
		v1.NodePoolLabelKey: pool.Name, "karpenter.k8s.aws/ec2nodeclass": "default", "team": "platform",
		corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: "a", v1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
	}
	room := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	since := metav1.NewTime(c.now.Add(-quiet))
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, UID: "c", Labels: labels, Annotations: map[string]string{
			v1.NodePoolHashAnnotationKey: pool.Hash(), v1.NodePoolHashVersionAnnotationKey: v1.NodePoolHashVersion,
		}},
		Status: v1.NodeClaimStatus{ProviderID: "p-" + name, Capacity: room, Allocatable: room},
	}
	holds := func(condition string, since metav1.Time) {
		claim.Status.Conditions = append(claim.Status.Conditions, v1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: since})
	}
	holds(v1.LaunchedCondition, since)
	holds(v1.InitializedCondition, since)
	if after := pool.Spec.Disruption.ConsolidateAfter.Duration; after != nil && quiet >= *after {
		holds(v1.ConsolidatableCondition, since)
	}
	if drifted {
		holds(v1.DriftedCondition, metav1.NewTime(c.now))
	}
	known, _ := c.convert.Claim(claim)
	c.SetClaim(known)
	labels = map[string]string{v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true", corev1.LabelHostname: name}
	for key, value := range claim.Labels {
		labels[key] = value
	}
	c.SetNode(c.convert.Node(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "n", Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "p-" + name},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}))
}

// TestPlanWithManifestIsTheControllersPlan: what is planned of a dump with a changed manifest is what the
// controller plans once it has seen the change.
func TestPlanWithManifestIsTheControllersPlan(t *testing.T) {
	text, err := os.ReadFile("../../../docs/plan/general.yaml")
	if err != nil {
		t.Fatal(err)
	}
	was := read(t, "../../../docs/plan/general.yaml").Pools[0].Pool
	commands, launches := 0, 0
	for _, edit := range []struct {
		words string
		drift bool // all nodes do
	}{
		{"", false},
		{"amd64 -> arm64", true},
		{"amd64 -> arm64; nodes: \"1\" -> nodes: 67%", true},
		{"team: platform -> team: web", true},
		{"cpu: 100 -> cpu: 3", false},
		{"[on-demand] -> [on-demand, spot]", false},
		{"consolidateAfter: 1m -> consolidateAfter: 150s; nodes: \"1\" -> nodes: 100%", false},
		{"consolidateAfter: 1m -> consolidateAfter: Never", false},
		{"consolidateAfter: 1m -> consolidationPolicy: WhenEmpty", false},
		{"nodeClassRef: -> taints: [{key: a, effect: NoSchedule}]\\n      nodeClassRef:", true},
		{"limits: -> weight: 7\\n  limits:", false},
	} {
		changed := &plan.Manifests{}
		if err := changed.Read(edit.words, strings.NewReader(written("general: "+edit.words, string(text)))); err != nil {
			t.Fatal(err)
		}
		is := changed.Pools[0].Pool
		c := newCluster(was)
		var dump bytes.Buffer
		if err := (scenario.Situation{Snapshot: c.Snapshot(c.now), Policy: model.DefaultPolicy()}).Print(&dump); err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Read(&dump, nil)
		if err != nil {
			t.Fatal(err)
		}
		foreseen, err := plan.With(s.Snapshot, changed, nil, decider(s.Policy))
		if err != nil {
			t.Fatal(err)
		}
		c.pool(is)
		for i, name := range []string{"a", "b", "c"} {
			quiet := time.Duration(i+1) * time.Minute
			marked := was.DeepCopy() // made from what was, and told what is
			marked.Spec.Disruption = is.Spec.Disruption
			c.machine(marked, name, quiet, edit.drift)
		}
		happens := plan.Of(c.Snapshot(c.now), decider(s.Policy))
		if diff := cmp.Diff(happens, foreseen, cmpopts.IgnoreFields(plan.Report{}, "Changes", "Unchanged"), cmpopts.IgnoreFields(plan.Leaving{}, "Why"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: not what then happens (-happens +foreseen):\n%s", edit.words, diff)
		}
		if drifted := len(foreseen.Changes[0].Drifted) == 3; drifted != edit.drift {
			t.Errorf("%s: %v drift", edit.words, foreseen.Changes[0].Drifted)
		}
		if same := foreseen.Changes[0].Kind == "same"; same != (edit.words == "") {
			t.Errorf("%s: the change is %s", edit.words, foreseen.Changes[0].Kind)
		}
		commands += len(foreseen.Commands)
		launches += len(foreseen.Launches)
	}
	if commands < 5 || launches < 5 {
		t.Errorf("%d commands and %d launches prove little", commands, launches)
	}
}
