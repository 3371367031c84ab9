// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/solve"
)

// fleet is static pool p, and what has drifted of it.
type fleet struct {
	static  model.Static
	budget  int
	limit   int // of nodes; 0 = none
	sold    bool
	drifted []string // nodes, the longest drifted first
	change  func(*model.Node)
}

// snapshot returns pools of the fleets, called p0 and so on.
func snapshot(fleets ...fleet) *model.Snapshot {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &model.Snapshot{Now: start, Resources: model.NewAxis().Names()}
	for i, f := range fleets {
		p := model.Pool{
			Name: fmt.Sprint("p", i), Unavailable: "static", Static: &f.static,
			Disruption: model.Disruption{Allowed: map[model.Reason]int{model.Drifted: f.budget}},
		}
		if f.limit > 0 {
			p.Limits = []model.Limit{{Resource: model.Nodes, Max: int64(f.limit)}}
		}
		for j, name := range []string{"dear", "cheap"} {
			p.Types = append(p.Types, &model.InstanceType{
				Name: name, Capacity: model.Resources{}.With(model.CPU, 4000).With(model.Nodes, 1), Allocatable: model.Resources{}.With(model.CPU, 4000),
				Offerings: []model.Offering{{Zone: "a", CapacityType: model.Spot, Price: model.Price(2-j) * model.Dollar, Available: !f.sold}},
			})
		}
		for j, name := range f.drifted {
			n := model.Node{
				Name: name, Claim: "claim-" + name, Pool: p.Name, Registered: true, Initialized: true, Price: 3 * model.Dollar,
				Disruption: model.NodeDisruption{Drifted: start.Add(time.Duration(j-100) * time.Minute), Cost: 1},
			}
			if f.change != nil {
				f.change(&n)
			}
			s.Nodes = append(s.Nodes, n)
		}
		s.Pools = append(s.Pools, p)
	}
	slices.SortFunc(s.Nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// said renders the commands and the stays.
func said(p *model.Plan) string {
	var out strings.Builder
	for _, c := range p.Commands {
		fmt.Fprintf(&out, "%s %s -> %d %s\n", c.Reason, c.Nodes[0].Node, len(c.Launches), c.Launches[0].Pool)
	}
	for _, s := range p.Stays {
		fmt.Fprintf(&out, "%s stays (%s): %s\n", s.Node, s.Cause, s.Why)
	}
	return out.String()
}

func TestStaticDrift(t *testing.T) {
	full := func(n int) model.Static { return model.Static{Replicas: n, Active: n} }
	blocked := func(n *model.Node) { n.Disruption.Blocked = "the annotation" }
	held := func(n *model.Node) { n.Disruption.Held = "pod x" }
	late := func(n *model.Node) { n.Disruption.Held, n.Disruption.Deadline = "pod x", true }
	for _, tc := range []struct {
		name   string
		fleets []fleet
		want   string
	}{
		{"spec 40/43: as many as the budget allows, the longest drifted first; pools are independent", []fleet{
			{static: full(4), budget: 3, drifted: []string{"d", "c", "b", "a"}},
			{static: full(1), budget: 1, drifted: []string{"e"}},
			{static: full(1), budget: 0, drifted: []string{"f"}},
		}, `Drifted d -> 1 p0
Drifted c -> 1 p0
Drifted b -> 1 p0
Drifted e -> 1 p1
a stays (budget): the disruption budget of nodepool p0 allows no more nodes now
f stays (budget): the disruption budget of nodepool p2 allows no more nodes now
`},
		{"spec 40/44: a limit that is reached leaves no room", []fleet{{static: full(2), budget: 2, limit: 2, drifted: []string{"a", "b"}}},
			`a stays (policy): the limit nodes=2 of nodepool p0 leaves no capacity for its replacement
b stays (policy): the limit nodes=2 of nodepool p0 leaves no capacity for its replacement
`},
		{"spec 40/44: a limit that leaves two", []fleet{{static: full(3), budget: 3, limit: 5, drifted: []string{"a", "b", "c"}}},
			`Drifted a -> 1 p0
Drifted b -> 1 p0
c stays (policy): the limit nodes=5 of nodepool p0 leaves no capacity for its replacement
`},
		{"spec 40/44: what leaves and what is under way takes room", []fleet{
			{static: model.Static{Replicas: 3, Active: 3, Leaving: 1, Pending: 1}, budget: 3, limit: 6, drifted: []string{"a", "b"}}},
			`Drifted a -> 1 p0
b stays (policy): the limit nodes=6 of nodepool p0 leaves no capacity for its replacement
`},
		{"room for nodes that are still to come is theirs", []fleet{
			{static: model.Static{Replicas: 3, Active: 1}, budget: 3, limit: 3, drifted: []string{"a"}}},
			"a stays (policy): the limit nodes=3 of nodepool p0 leaves no capacity for its replacement\n"},
		{"spec 40/45: too many are scaled down first", []fleet{{static: model.Static{Replicas: 2, Active: 3}, budget: 3, drifted: []string{"a"}}},
			"a stays (policy): nodepool p0 is scaled down first: it has 3 nodes for 2 replicas\n"},
		{"commands under way are not too many", []fleet{{static: model.Static{Replicas: 2, Active: 2, Pending: 1}, budget: 1, drifted: []string{"a"}}},
			"Drifted a -> 1 p0\n"},
		{"spec 40/46: no replicas, nothing", []fleet{{static: model.Static{Leaving: 1}, budget: 1, drifted: []string{"a"},
			change: func(n *model.Node) { n.Deleting = true }}}, ""},
		{"spec 40/46: no limit, as many as the budget says", []fleet{{static: full(2), budget: 2147483647, drifted: []string{"a", "b"}}},
			"Drifted a -> 1 p0\nDrifted b -> 1 p0\n"},
		{"blocked", []fleet{{static: full(1), budget: 1, drifted: []string{"a"}, change: blocked}}, "a stays (blocked): the annotation\n"},
		{"held by a pod", []fleet{{static: full(1), budget: 1, drifted: []string{"a"}, change: held}}, "a stays (blocked): pod x\n"},
		{"held by a pod, with a deadline", []fleet{{static: full(1), budget: 1, drifted: []string{"a"}, change: late}}, "Drifted a -> 1 p0\n"},
		{"sold out", []fleet{{static: full(1), budget: 1, sold: true, drifted: []string{"a"}}},
			"a stays (no place): nothing that nodepool p0 allows is available to replace it\n"},
		{"not initialized", []fleet{{static: full(1), budget: 1, drifted: []string{"a"}, change: func(n *model.Node) { n.Initialized = false }}}, ""},
		{"without pods first", []fleet{{static: full(2), budget: 1, drifted: []string{"old", "young"}, change: func(n *model.Node) {
			if n.Name == "old" {
				n.Movable = []model.Pending{{Shape: &model.Shape{Key: "x"}, Pods: []model.Pod{{Namespace: "default", Name: "x"}}}}
			}
		}}}, `Drifted young -> 1 p0
old stays (budget): the disruption budget of nodepool p0 allows no more nodes now
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := said(solve.Decide(snapshot(tc.fleets...), model.DefaultPolicy())); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// spec 40/42: dynamic drift leaves static pools alone, which need no place for
// pods. spec 40/30, spec 40/77: empty or not, their nodes are not consolidated.
func TestStaticIsNotConsolidated(t *testing.T) {
	s := snapshot(fleet{static: model.Static{Replicas: 1, Active: 1}, budget: 9, drifted: []string{"a"}, change: func(n *model.Node) {
		n.Disruption = model.NodeDisruption{Empty: true, Consolidatable: true, Cost: 1}
	}})
	s.Pools[0].Disruption.Allowed = map[model.Reason]int{model.Empty: 9, model.Underutilized: 9, model.Drifted: 9}
	if got := said(solve.Decide(s, model.DefaultPolicy())); got != "" {
		t.Errorf("an empty node: %s", got)
	}
	s.Nodes[0].Disruption.Empty = false
	s.Nodes[0].Movable = []model.Pending{{Shape: &model.Shape{Key: "x", Requests: model.Resources{}.With(model.CPU, 100)}, Pods: []model.Pod{{Namespace: "default", Name: "x"}}}}
	s.Nodes = append(s.Nodes, model.Node{
		Name: "roomy", Registered: true, Initialized: true,
		Allocatable: model.Resources{}.With(model.CPU, 8000).With(model.Pods, 10),
	})
	if got := said(solve.Decide(s, model.DefaultPolicy())); got != "" {
		t.Errorf("a node whose pods fit elsewhere: %s", got)
	}
}

// What a command costs counts on the cheapest offering the template allows.
func TestStaticDriftSavings(t *testing.T) {
	p := solve.Decide(snapshot(fleet{static: model.Static{Replicas: 1, Active: 1}, budget: 1, drifted: []string{"a"}}), model.DefaultPolicy())
	if len(p.Commands) != 1 {
		t.Fatal(said(p))
	}
	c := p.Commands[0]
	if l := c.Launches[0]; l.Type != "cheap" || l.Zone != "a" || c.Cost != 3*model.Dollar || c.Savings != 2*model.Dollar || len(l.Types) > 0 || len(l.Pods) > 0 {
		t.Errorf("%+v", c)
	}
}
