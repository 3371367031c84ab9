// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// TestCluster: nodes that may be removed free capacity within limits, pods of
// several nodes and of nodes that are going are planned together, and what
// stays counts the same on both sides.
func TestCluster(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(`
type small cpu=2 mem=8Gi zones=a on-demand=0.1
type large cpu=8 mem=32Gi zones=a on-demand=0.35
pool general limits=nodes:3
pool base static=replicas:1,active:1
node n1 claim=c1 pool=general type=small zone=a ct=on-demand
node n2 claim=c2 pool=general type=small zone=a ct=on-demand
node n3 claim=c3 pool=general type=small zone=a ct=on-demand deleting
node n4 claim=c4 pool=general type=small zone=a ct=on-demand
node s1 claim=c5 pool=base type=large zone=a ct=on-demand used=cpu:8,pods:1
pods web-1..2 cpu=1 on=n1
pods web-3..4 cpu=1 on=n2
pods web-5 cpu=1 from=n3
pods vast cpu=64
`))
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.Nodes)
	a := OfCluster(s, func(fresh *model.Snapshot) *model.Plan { return new(solve.Planner).Place(fresh, model.DefaultPolicy()) })
	want := ClusterAnswer{
		Nodes: 5, Cost: 0.75, Pods: 6, Waiting: 1, Fresh: Fresh{Nodes: 4, Cost: 0.65, Pending: 1}, Bound: 0.6, Kept: 1, KeptCost: 0.35,
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if usage := s.Pools[1].Usage; len(s.Nodes) != before || usage.IsZero() {
		t.Errorf("the situation has changed: %d nodes, usage %v", len(s.Nodes), usage)
	}
	var text strings.Builder
	if err := a.Text(&text); err != nil || !strings.Contains(text.String(), "  unplaced   1 pod, not counted from scratch\n") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

// TestClusterComparison: only nodes that run all pods are compared with the
// least possible cost; without nodes there is nothing to compare.
func TestClusterComparison(t *testing.T) {
	const types = "type small cpu=2 mem=8Gi zones=a on-demand=0.1\npool general\n"
	const node = "node n1 claim=c1 pool=general type=small zone=a ct=on-demand"
	for _, c := range []struct{ name, situation, want string }{
		{"no nodes", "pods web-1..2 cpu=1", "there are no nodes yet whose cost could be compared with the least possible"},
		{"no nodes and no pods", "", ""},
		{"enough nodes", node + "\npods web-1 cpu=1 on=n1", "the nodes cost 0.0% more than the least possible"},
		{
			"too few nodes", node + "\npods web-1 cpu=1 on=n1\npods web-2..9 cpu=1",
			"the nodes cost less than the least possible because they do not run all pods: 8 pods waiting for a node",
		},
		{"a node without a price", node + " price=0\npods web-1 cpu=1 on=n1", "the price of 1 node is unknown, so the cost can't be compared with the least possible"},
		{"a cheaper offering is gone", node + " price=0.05\npods web-1 cpu=1 on=n1", "the nodes cost less than the least possible at current prices and offerings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := scenario.Parse(strings.NewReader(types + c.situation))
			if err != nil {
				t.Fatal(err)
			}
			a := OfCluster(s, func(fresh *model.Snapshot) *model.Plan { return new(solve.Planner).Place(fresh, model.DefaultPolicy()) })
			if got := a.comparison(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			var text strings.Builder
			if err := a.Text(&text); err != nil || strings.Contains(text.String(), "-") || !strings.Contains(text.String(), c.want) {
				t.Errorf("%v:\n%s", err, text.String())
			}
		})
	}
}

// TestPriceParts: the parts of the price are shown for nodes and for launches,
// and not for a price that is not known.
func TestPriceParts(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(`
type small cpu=2 mem=8Gi zones=a,b on-demand=0.1
pool general extras="disk:0.002,address:0.005 zone a,license:0.01 per-vcpu"
pool plain requires=team=b
node n1 pool=general type=small zone=a ct=on-demand
node n2 pool=general type=small zone=b ct=on-demand
node n3 pool=plain type=small zone=a ct=on-demand
node n4 pool=general cpu=2
pods web cpu=2 select=zone=a
`))
	if err != nil {
		t.Fatal(err)
	}
	disk, license := Part{"disk", 0.002}, Part{"license", 0.02}
	for name, want := range map[string][]Part{
		"n1": {{"instance", 0.1}, disk, {"address", 0.005}, license}, "n2": {{"instance", 0.1}, disk, license}, "n3": nil, "n4": nil,
	} {
		if diff := cmp.Diff(want, NodeOf(s, name).PriceParts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	place := func(s *model.Snapshot) *model.Plan { return new(solve.Planner).Place(s, model.DefaultPolicy()) }
	a := OfCluster(s, place)
	if diff := cmp.Diff([]Part{{"instance", 0.3}, {"disk", 0.004}, {"address", 0.005}, {"license", 0.04}}, a.Parts); diff != "" || a.Cost != 0.349 {
		t.Errorf("cluster, cost %v (-want +got):\n%s", a.Cost, diff)
	}
	s.Nodes, s.Pools = nil, s.Pools[:1]
	answer, _ := Of(s, place(s), "default/web")
	var text strings.Builder
	if err := answer.Text(&text); err != nil {
		t.Fatal(err)
	}
	if want := "  type       small on-demand a $0.127/h\n  price      instance $0.1/h + disk $0.002/h + address $0.005/h + license $0.02/h\n"; !strings.Contains(text.String(), want) {
		t.Errorf("pod:\n%s", text.String())
	}
}
