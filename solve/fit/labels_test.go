// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math/rand/v2"
	"testing"

	"karpenter/model"
)

// TestLabelsMeetDemands compares what Labels say with each node's own.
func TestLabelsMeetDemands(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	keys, values := []string{"a", "b", "c"}, []string{"1", "2", "3"}
	some := func(most int) model.Requirements {
		var out model.Requirements
		for range rng.IntN(most + 1) {
			key, op := keys[rng.IntN(3)], []model.Operator{model.In, model.In, model.NotIn, model.Exists, model.DoesNotExist}[rng.IntN(5)]
			var of []string
			if op == model.In || op == model.NotIn {
				of = []string{values[rng.IntN(3)], values[rng.IntN(3)]}
			}
			out = out.And(model.NewRequirement(key, op, of...))
		}
		return out
	}
	s := &model.Snapshot{}
	for range 200 {
		s.Nodes = append(s.Nodes, model.Node{Labels: some(3)})
	}
	var m Memory
	for range 200 {
		demands := some(2)
		for range 2 { // the second answer is kept from the first
			got, _ := m.Labels(s).Meeting(demands)
			for i := range s.Nodes {
				if _, want := s.Nodes[i].Labels.Satisfies(demands); got.Has(i) != want {
					t.Fatalf("seed %d: %v satisfy %v: %t, want %t", seed, s.Nodes[i].Labels, demands, got.Has(i), want)
				}
			}
		}
	}
	other := &model.Snapshot{Nodes: append([]model.Node{{Labels: some(3)}}, s.Nodes...)}
	if m.Labels(s) != m.Labels(s) || m.Labels(s) == m.Labels(other) {
		t.Errorf("labels are not kept for the same nodes, or are kept for others")
	}
}
