package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// TestCluster: what may go makes room within limits, pods of several nodes and
// of nodes that are going are planned together, and what stays counts the same
// on both sides.
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
	if err := a.Text(&text); err != nil || !strings.Contains(text.String(), "  no place   1 pod, in no figure of the fresh plan\n") {
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
		{"enough nodes", node + "\npods web-1 cpu=1 on=n1", "the nodes cost 0.0 % more than the least possible"},
		{
			"too few nodes", node + "\npods web-1 cpu=1 on=n1\npods web-2..9 cpu=1",
			"the nodes cost less than the least possible because they do not run all pods: 8 pods waiting for a node",
		},
		{"a node without a price", node + " price=0\npods web-1 cpu=1 on=n1", "the price of 1 node is unknown, so the cost can't be compared with the least possible"},
		{"a cheaper offering is gone", node + " price=0.05\npods web-1 cpu=1 on=n1", "the nodes cost less than the least possible at the prices and offerings of today"},
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
