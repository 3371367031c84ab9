// SPDX-License-Identifier: Apache-2.0

package wild_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"karpenter/bench/wild"
	"karpenter/bench/workload"
)

func draw(t *testing.T, c wild.Case) *workload.Workload {
	t.Helper()
	w, err := wild.Draw(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSeedRepeatsProblems(t *testing.T) {
	text := func(c wild.Case) string {
		w := draw(t, c)
		out, err := json.Marshal([]any{w.Pools, w.Daemons, w.Machines, slices.Collect(w.Pending())})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, family := range wild.Families() {
		c := wild.Case{Family: family, Deployments: 8, Nodes: 5, Draw: 1, Seed: 1}
		if text(c) != text(c) {
			t.Errorf("%s: the same seed draws different problems", family)
		}
	}
	c := wild.Case{Family: "mix", Deployments: 8, Draw: 1, Seed: 1}
	other, later := c, c
	other.Seed, later.Draw = 2, 2
	if text(c) == text(other) || text(c) == text(later) {
		t.Error("another seed or draw gives the same problem")
	}
}

func TestEveryFamilyAsksForSomething(t *testing.T) {
	for _, family := range wild.Families() {
		w := draw(t, wild.Case{Family: family, Deployments: 20, Nodes: 30, Draw: 1, Seed: 3})
		if len(w.Machines) != 30 {
			t.Errorf("%s: %d existing nodes, want 30", family, len(w.Machines))
		}
		if disrupts := wild.Disruption(family); disrupts != (w.Pods == 0) {
			t.Errorf("%s: %d pods are pending", family, w.Pods)
		}
		names := map[string]bool{}
		for p := range w.Pending() {
			names[p.Name] = true
		}
		if len(names) != w.Pods {
			t.Errorf("%s: %d pods have %d names", family, w.Pods, len(names))
		}
	}
}

// TestRunningPodsFit checks what existing nodes run: enough room, and labels and
// taints that the pods accept.
func TestRunningPodsFit(t *testing.T) {
	for _, family := range wild.Families() {
		w := draw(t, wild.Case{Family: family, Deployments: 20, Nodes: 30, Draw: 1, Seed: 3})
		for _, m := range w.Machines {
			left := m.Node.Status.Allocatable.DeepCopy()
			for _, p := range m.Bound {
				for name, q := range workload.Requests(p) {
					have := left[name]
					have.Sub(q)
					if left[name] = have; have.Sign() < 0 {
						t.Fatalf("%s: node %s has too little %s", family, m.Node.Name, name)
					}
				}
				// The pods that fill nodes up are of no pool's kind.
				if p.Labels[workload.Label] != "old" && !workload.Accepts(m.Node, p) {
					t.Fatalf("%s: node %s does not accept pod %s", family, m.Node.Name, p.Name)
				}
			}
		}
	}
}

func TestMixHasTheSharesItSays(t *testing.T) {
	w := draw(t, wild.Case{Family: "mix", Deployments: 1000, Draw: 1, Seed: 5})
	if w.Pods < 11_000 || w.Pods > 15_000 {
		t.Errorf("%d pods of 1000 Deployments, want about 13 each", w.Pods)
	}
	counts := map[string]int{}
	count := func(what string, is bool) {
		if is {
			counts[what]++
		}
	}
	for i := range w.Deployments {
		d := &w.Deployments[i]
		if d.Replicas < 2 || d.Replicas > w.Pods/8 {
			t.Errorf("%d replicas, want 2 to a tenth of %d", d.Replicas, w.Pods)
		}
		if d.CPU < 50 || d.CPU > 15_000 || d.Memory < 64 || d.Memory > 64<<10 {
			t.Errorf("a pod requests %dm and %dMi", d.CPU, d.Memory)
		}
		s := d.Pod(0).Spec
		spread := corev1.TopologySpreadConstraint{}
		if len(s.TopologySpreadConstraints) > 0 {
			spread = s.TopologySpreadConstraints[0]
		}
		count("required zonal spread", spread.TopologyKey == corev1.LabelTopologyZone && spread.WhenUnsatisfiable == corev1.DoNotSchedule)
		count("preferred zonal spread", spread.TopologyKey == corev1.LabelTopologyZone && spread.WhenUnsatisfiable == corev1.ScheduleAnyway)
		count("four per host", spread.TopologyKey == corev1.LabelHostname && spread.MaxSkew == 4)
		count("one per host", s.Affinity != nil && s.Affinity.PodAntiAffinity != nil && len(s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0)
		count("arm64", s.NodeSelector[corev1.LabelArchStable] == "arm64")
		count("tainted pool", len(s.Tolerations) > 0)
	}
	for what, percent := range map[string]float64{
		"required zonal spread": 18, "preferred zonal spread": 6, "four per host": 6, "one per host": 6, "arm64": 12, "tainted pool": 8,
	} {
		if got := float64(counts[what]) / 10; math.Abs(got-percent) > 4 {
			t.Errorf("%s: %.1f%% of the Deployments, want about %.0f%%", what, got, percent)
		}
	}
}

func TestHalfEmptyNodesWaitForConsolidation(t *testing.T) {
	w := draw(t, wild.Case{Family: "half-empty", Deployments: 40, Draw: 1, Seed: 1})
	pods := 0
	for _, m := range w.Machines {
		pods += m.Pods()
		last := m.Claim.Status.Conditions[len(m.Claim.Status.Conditions)-1]
		if last.Type != "Consolidatable" {
			t.Fatalf("node %s has no condition Consolidatable", m.Node.Name)
		}
	}
	if drawn := 13 * 40; len(w.Machines) == 0 || pods > drawn*3/4 || pods < drawn/10 {
		t.Errorf("%d pods are left on %d nodes", pods, len(w.Machines))
	}
}

func TestUnknownFamily(t *testing.T) {
	if _, err := wild.Draw(wild.Case{Family: "tame", Deployments: 1}); err == nil {
		t.Error("a family that does not exist can be drawn")
	}
	if got := wild.Matching("hostile"); len(got) != 4 {
		t.Errorf("families beginning with hostile: %v", got)
	}
	if got := wild.Matching("mix"); len(got) != 1 {
		t.Errorf("families called mix: %v", got)
	}
}
