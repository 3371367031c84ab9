// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"math"
	"testing"

	"karpenter/model"
	"karpenter/solve/fit"
)

// TestGroupOverflow: a group cannot save what new nodes cost for the pods that the other nodes
// have no capacity for, and those are the pods whose dual value is lowest for what they request.
func TestGroupOverflow(t *testing.T) {
	shape := func(cpu, memory int64) *model.Shape { return &model.Shape{Requests: model.Resources{cpu, memory}} }
	small, large, none := shape(1, 1), shape(4, 1), shape(0, 0)
	node := func(price model.Price, movable ...model.Pending) model.Node {
		return model.Node{Claim: "c", Pool: "p", Price: price, Movable: movable}
	}
	pods := func(s *model.Shape, n int) model.Pending { return model.Pending{Shape: s, Pods: make([]model.Pod, n)} }
	worth := map[*model.Shape]float64{small: 3, large: 4, none: 0}
	for _, c := range []struct {
		about     string
		free      []int64 // CPU of the other nodes
		potential float64
	}{
		{"all pods have a place", []int64{4, 3}, 30},
		{"a part of the large pod has none", []int64{5}, 30 - 4.0/2},
		{"the large pod has none", []int64{3}, 30 - 4},
		{"a small pod has none, either", []int64{2}, 30 - 4 - 3},
		{"no pod has any", nil, 30 - 4 - 9},
	} {
		nodes := []model.Node{node(10, pods(small, 2), pods(none, 1)), node(20, pods(large, 1), pods(small, 1))}
		rows := []fit.NodeRow{{Site: 0, Free: model.Resources{100, 100}}, {Site: 1, Free: model.Resources{100, 100}}} // the group itself
		for i, cpu := range c.free {
			nodes = append(nodes, node(0))
			rows = append(rows, fit.NodeRow{Site: 2 + i, Free: model.Resources{cpu, 100}})
		}
		if len(c.free) == 0 {
			rows = append(rows, fit.NodeRow{Site: 2, Free: model.Resources{-5, -5}}) // daemons overdraw it
		}
		s := model.Snapshot{Nodes: nodes, Pools: []model.Pool{{Name: "p"}}}
		sc := &scene{given: &s, s: s, pools: map[string]int{"p": 0}}
		r := &round{inquiry: inquiry{estimates: estimates{scene: sc, worth: worth, rows: rows}}, permits: permits{scene: sc}}
		if got := r.potential([]int{0, 1}); math.Abs(got-c.potential) > 1e-9 {
			t.Errorf("%s: potential %g, want %g", c.about, got, c.potential)
		}
	}
}

// TestGroupRank: a group is only first if it saves more than its nodes do one by one.
func TestGroupRank(t *testing.T) {
	single := func(site int, savings model.Price, rank float64) *offer {
		return &offer{sites: []int{site}, command: model.Command{Savings: savings}, rank: rank}
	}
	bad := single(2, 100, 9)
	bad.why = "no place"
	singles := []*offer{single(0, 5, 2), single(1, 7, 3), bad, single(3, 50, 8)}
	if got := saved([]int{0, 1, 2}, singles); got != 12 {
		t.Errorf("saved %g, want 12", got)
	}
	group := &offer{sites: []int{0, 1, 2}, command: model.Command{Savings: 12}, toll: toll{weight: 12}}
	if got := rank(group, singles); got != 1 {
		t.Errorf("a group that saves as much ranks %g, want 1", got)
	}
	group.command.Savings = 13
	if got := rank(group, singles); got != 3 {
		t.Errorf("a group that saves more ranks %g, want 3", got)
	}
}
