// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestUpAndDown is the main job: pods make nodes appear, run on them, and
// nodes no one needs go away. The program then ends when asked to.
func TestUpAndDown(t *testing.T) {
	f := setUp(t, time.Second)
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	k := f.StartController(t)
	d := f.deployment(20, "1", "1Gi")
	v.Until("pods run", patience, f.running(v, 20))
	v.Until("claims are ready", patience, func() string {
		for _, c := range f.claims(v) {
			if !ready(&c) {
				return fmt.Sprintf("claim %s is not: %v", c.Name, c.Status.Conditions)
			}
		}
		return ""
	})
	f.scale(d, 0)
	v.Until("nodes are gone", patience, f.empty(v))
	k.Stop()
	if code := k.ExitCode(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

func ready(c *v1.NodeClaim) bool {
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return false
}

// TestLimits asks for more than the pool may have. At no moment does the pool
// exceed its limits, and the pods left over say why they wait.
func TestLimits(t *testing.T) {
	f := setUp(t, 0)
	f.pool(func(p *v1.NodePool) { p.Spec.Limits = v1.Limits{"cpu": quantity("16"), "nodes": quantity("5")} })
	v := f.Watch(t, f.oneToOne, func(v *harness.View) {
		cpus := int64(0)
		for _, n := range f.nodes(v) {
			cpus += n.Status.Capacity.Cpu().Value()
		}
		if n := len(f.claims(v)); cpus > 16 || n > 5 {
			t.Errorf("%d CPUs in %d claims exceed the limits", cpus, n)
		}
	})
	f.StartController(t)
	f.deployment(30, "1", "1Gi")
	v.Until("the limit is named", patience, func() string {
		waiting, told := 0, 0
		for _, p := range v.Pods(f.name) {
			if p.Spec.NodeName != "" {
				continue
			}
			waiting++
			for _, message := range v.Events("FailedScheduling", p.Name) {
				if contains(message, "limits", "cpu=16") {
					told++
					break
				}
			}
		}
		if running := 30 - waiting; running >= 10 && waiting > 0 && told == waiting {
			return ""
		}
		return fmt.Sprintf("%d of %d waiting pods were told of the limit", told, waiting)
	})
}

// TestDrainRespectsBudgets deletes a node whose pods a budget protects: never
// are fewer pods running than the budget wants, and all end up elsewhere.
func TestDrainRespectsBudgets(t *testing.T) {
	f := setUp(t, time.Second)
	f.pool(nil)
	const replicas, least = 6, 5
	budget := intstr.FromInt32(least)
	armed := false
	v := f.Watch(t, f.oneToOne, func(v *harness.View) {
		healthy := 0
		for _, p := range v.Pods(f.name) {
			if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				healthy++
			}
		}
		if armed && healthy < least {
			t.Errorf("only %d pods are running, the budget wants %d", healthy, least)
		}
	})
	f.StartController(t)
	f.deployment(replicas, "1", "1Gi")
	v.Until("pods run", patience, f.running(v, replicas))
	f.create(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &budget, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}})
	armed = true
	old := map[string]bool{}
	for _, c := range f.claims(v) {
		old[c.Name] = true
		if err := f.Client.Delete(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	v.Until("all pods run on new nodes", patience, func() string {
		for _, c := range f.claims(v) {
			if old[c.Name] {
				return "claim " + c.Name + " is still there"
			}
		}
		return f.running(v, replicas)()
	})
}
