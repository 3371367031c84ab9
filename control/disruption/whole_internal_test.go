// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"testing"

	"karpenter/model"
)

// TestAdmissionOfGroups starts no command that takes some of the nodes away whose pods are
// disrupted together, and leaves others (spec 46/116): not even one that was planned before
// a pod of the group came to another node. Repair, and drift of a node with a
// terminationGracePeriod, wait for no group.
func TestAdmissionOfGroups(t *testing.T) {
	node := func(name string, groups ...string) model.Node {
		return model.Node{Name: name, Claim: "c-" + name, Pool: "p", Initialized: true, Disruption: model.NodeDisruption{Together: groups}}
	}
	late := node("late", "a")
	late.Disruption.Deadline = true
	all := map[model.Reason]int{model.Drifted: 9, model.Underutilized: 9, model.Unhealthy: 9}
	s := &model.Snapshot{
		Pools: []model.Pool{{Name: "p", Disruption: model.Disruption{Allowed: all}}},
		Nodes: []model.Node{node("n1", "a"), node("n2", "a", "b"), node("n3", "b"), late, node("plain")},
	}
	for _, c := range []struct {
		reason model.Reason
		nodes  []string
		want   bool
	}{
		{model.Underutilized, []string{"plain"}, true},
		{model.Underutilized, []string{"n3"}, false},
		{model.Drifted, []string{"n1", "n2", "late"}, false},
		{model.Drifted, []string{"n1", "n2", "n3", "late"}, true},
		{model.Drifted, []string{"late"}, true},
		{model.Underutilized, []string{"late"}, false},
		{model.Unhealthy, []string{"n1"}, true},
	} {
		command := &model.Command{Reason: c.reason}
		for _, n := range c.nodes {
			command.Nodes = append(command.Nodes, model.Target{Node: n, Claim: "c-" + n})
		}
		if got := newAdmission(s).take(command); got != c.want {
			t.Errorf("%s of %v: %t, want %t", c.reason, c.nodes, got, c.want)
		}
	}
}
