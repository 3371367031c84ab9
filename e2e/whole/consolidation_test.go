// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestConsolidation lets a pool launch instances of half the size of two that are
// half empty: each is replaced by one, the replacement first and one at a time,
// as the budget says. It is spec 40/57 from end to end.
func TestConsolidation(t *testing.T) {
	f := setUp(t, time.Second)
	f.StartController(t)
	allow := func(types ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types}
	}
	f.pool(func(p *v1.NodePool) {
		p.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
		p.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("2s")
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "1"}}
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, allow("c-4x-amd64-linux"))
	})
	const nodes = 2
	began := false
	v := f.Watch(t, f.oneToOne, func(v *harness.View) {
		going, there := 0, 0
		for _, n := range f.nodes(v) {
			for _, taint := range n.Spec.Taints {
				if taint.Key == v1.DisruptedTaintKey {
					going++
				}
			}
		}
		for _, c := range f.claims(v) {
			if c.DeletionTimestamp == nil && conditions.IsTrue(&c, v1.InitializedCondition) {
				there++
			}
		}
		if going > 1 {
			t.Errorf("%d nodes are disrupted at once, the budget is 1", going)
		}
		if began && there < nodes {
			t.Errorf("%d nodes are there for pods that need %d", there, nodes)
		}
	})
	f.deployment(nodes, "1500m", "6Gi")
	v.Until("pods run on two large nodes", patience, func() string {
		if why := f.running(v, nodes)(); why != "" {
			return why
		}
		return f.areAll(v, nodes, "c-4x-amd64-linux")
	})
	began = true

	pool := v.Pool(f.name).DeepCopy()
	old := pool.DeepCopy()
	requirements := pool.Spec.Template.Spec.Requirements
	requirements[len(requirements)-1] = allow("c-4x-amd64-linux", "s-2x-amd64-linux")
	if err := f.Client.Patch(t.Context(), pool, client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
	v.Until("pods run on two small nodes", 2*patience, func() string {
		if why := f.areAll(v, nodes, "s-2x-amd64-linux"); why != "" {
			return why
		}
		return f.running(v, nodes)()
	})
	for _, c := range f.claims(v) {
		if len(v.Events("DisruptionWaitingReadiness", c.Name)) == 0 {
			t.Errorf("claim %s was not waited for", c.Name)
		}
	}
}

// areAll says what keeps the test's nodes from being n initialized ones of the
// type.
func (f *fixture) areAll(v *harness.View, n int, instanceType string) string {
	found := f.nodes(v)
	for _, node := range found {
		if got := node.Labels[corev1.LabelInstanceTypeStable]; got != instanceType {
			return fmt.Sprintf("node %s is of type %s", node.Name, got)
		}
	}
	for _, c := range f.claims(v) {
		if !conditions.IsTrue(&c, v1.InitializedCondition) {
			return c.Name + " is not initialized"
		}
	}
	if claims := len(f.claims(v)); len(found) != n || claims != n {
		return fmt.Sprintf("%d nodes and %d claims, want %d", len(found), claims, n)
	}
	return ""
}
