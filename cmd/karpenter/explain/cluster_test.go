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
		Nodes: 5, Cost: 0.75, Pods: 6, Fresh: Fresh{Nodes: 4, Cost: 0.65, Pending: 1}, Bound: 0.6, Kept: 1, KeptCost: 0.35,
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
