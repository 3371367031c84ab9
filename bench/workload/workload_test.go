// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"slices"
	"testing"

	"karpenter/bench/workload"
)

// TestSameEveryTime generates twice and compares what engines would see.
func TestSameEveryTime(t *testing.T) {
	for _, name := range []string{"mixed-1000-spot-weighted", "topology-1000-spot", "one-more-fits"} {
		if text(t, name) != text(t, name) {
			t.Errorf("%s differs from run to run", name)
		}
	}
}

func text(t *testing.T, name string) string {
	w, err := workload.New(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal([]any{w.Pools, w.Daemons, w.Machines, slices.Collect(w.Pending())})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWorkloadsAreWhatTheySay(t *testing.T) {
	want := map[string]int{"mixed-5000-od": 5000, "distinct-10000-spot": 10000, "topology-10000-spot": 10000, "large-100000-spot": 100_000, "one-more-buys": 1}
	for name, pods := range want {
		w, err := workload.New(name)
		if err != nil {
			t.Fatal(err)
		}
		names, sizes := map[string]bool{}, map[string]bool{}
		for p := range w.Pending() {
			names[p.Name] = true
			if name == "distinct-10000-spot" {
				sizes[p.Spec.Containers[0].Resources.Requests.Cpu().String()+p.Spec.Containers[0].Resources.Requests.Memory().String()] = true
			}
		}
		if len(names) != pods || w.Pods != pods {
			t.Errorf("%s has %d pods, says %d", name, len(names), w.Pods)
		}
		if name == "distinct-10000-spot" && len(sizes) != pods {
			t.Errorf("%s has %d sizes", name, len(sizes))
		}
		if len(w.Entries) != 1364 || len(w.Entries[0].Offerings) != 6 {
			t.Errorf("%s has %d types", name, len(w.Entries))
		}
	}
}
