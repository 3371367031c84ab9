// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestRollOut edits the template of a pool: its claims drift, the pool says
// that it is being rolled out, and the nodes are replaced, replacements first
// and within the budget, until it is done.
func TestRollOut(t *testing.T) {
	const nodes, budget = 6, 2
	f := setUp(t, time.Second)
	f.StartController(t)
	f.pool(func(p *v1.NodePool) {
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: fmt.Sprint(budget)}}
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
			Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"c-4x-amd64-linux"},
		})
	})
	old := map[string]bool{}
	v := f.Watch(t, f.oneToOne, func(v *harness.View) {
		going, stays, ready := 0, 0, 0
		for _, c := range f.claims(v) {
			switch {
			case c.DeletionTimestamp != nil:
				going++
			case old[c.Name]:
				stays++
			case conditions.IsTrue(&c, v1.InitializedCondition):
				ready++
			}
		}
		if len(old) == 0 {
			return
		}
		if going > budget {
			t.Errorf("%d nodes are going at once, the budget is %d", going, budget)
		}
		if stays+ready < nodes {
			t.Errorf("%d nodes of old and %d new ones are there for pods that need %d", stays, ready, nodes)
		}
	})
	f.deployment(nodes, "3", "1Gi")
	v.Until("pods run", patience, f.running(v, nodes))
	v.Until("nodes are ready", patience, func() string {
		for _, c := range f.claims(v) {
			if !conditions.IsTrue(&c, v1.InitializedCondition) {
				return c.Name + " is not initialized"
			}
		}
		return ""
	})
	for _, c := range f.claims(v) {
		old[c.Name] = true
	}
	if len(old) != nodes {
		t.Fatalf("%d nodes, want %d", len(old), nodes)
	}

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"metadata":{"labels":{"edition":"second"}}}}}`))
	if err := f.Client.Patch(t.Context(), v.Pool(f.name), patch); err != nil {
		t.Fatal(err)
	}
	v.Until("claims drift and the pool says so", patience, func() string {
		rolledOut := meta.FindStatusCondition(v.Pool(f.name).Status.Conditions, v1.RolledOutCondition)
		if rolledOut == nil || rolledOut.Status != metav1.ConditionFalse {
			return fmt.Sprintf("the pool says %v", rolledOut)
		}
		for _, c := range f.claims(v) {
			if old[c.Name] && !conditions.IsTrue(&c, v1.DriftedCondition) {
				return c.Name + " has not drifted"
			}
		}
		return ""
	})
	v.Until("all nodes are replaced", 2*patience, func() string {
		for _, c := range f.claims(v) {
			if old[c.Name] || c.Labels["edition"] != "second" {
				return c.Name + " is there still"
			}
		}
		return f.running(v, nodes)()
	})
	v.Until("the pool says that it is rolled out", patience, func() string {
		pool := v.Pool(f.name)
		rolledOut := meta.FindStatusCondition(pool.Status.Conditions, v1.RolledOutCondition)
		if rolledOut.Status != metav1.ConditionTrue || rolledOut.ObservedGeneration != pool.Generation {
			return fmt.Sprintf("it says %v", rolledOut)
		}
		return ""
	})
	if got := len(f.claims(v)); got != nodes {
		t.Errorf("%d nodes in the end, want %d", got, nodes)
	}
}
