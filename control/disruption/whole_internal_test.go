// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
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

// TestGroupGrowsMeanwhile gives up a command whose nodes go only as a whole, once a pod of
// their PodGroup is also on another node (spec 46/116). After the first deletion, it goes on.
func TestGroupGrowsMeanwhile(t *testing.T) {
	x := &execution{command: model.Command{Reason: model.Underutilized, Nodes: []model.Target{{Node: "n1", Claim: "c-n1"}, {Node: "n2", Claim: "c-n2"}}}}
	for _, c := range []struct {
		name    string
		groups  []string // of the third node
		deleted bool     // n2 is being deleted
		want    string
	}{
		{name: "no pod elsewhere"},
		{name: "a pod on a third node", groups: []string{"a"}, want: "n1"},
		{name: "a pod of another group on it", groups: []string{"b"}},
		{name: "one node is being deleted", groups: []string{"a"}, deleted: true},
	} {
		s := &scope{snapshot: &model.Snapshot{}, managed: map[string]*model.Node{}, claims: map[string]*v1.NodeClaim{}}
		for name, groups := range map[string][]string{"n1": {"a"}, "n2": {"a"}, "n3": c.groups} {
			s.snapshot.Nodes = append(s.snapshot.Nodes, model.Node{Name: name, Claim: "c-" + name, Disruption: model.NodeDisruption{Together: groups}})
			s.claims["c-"+name] = &v1.NodeClaim{}
		}
		for i := range s.snapshot.Nodes {
			s.managed[s.snapshot.Nodes[i].Claim] = &s.snapshot.Nodes[i]
		}
		if c.deleted {
			s.claims["c-n2"].DeletionTimestamp = &metav1.Time{}
		}
		if got := s.splits(x); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
