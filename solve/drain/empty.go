package drain

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
)

// Empty adds to plan the removal of nodes that no pod needs: empty for as long
// as their pool asks, not blocked, not receiving pods in this very plan, and
// within the pool's budget. A node that is kept for a budget or a block says
// so in plan.Stays.
func Empty(s *model.Snapshot, plan *model.Plan) {
	budget := map[string]int{}
	for i := range s.Pools {
		budget[s.Pools[i].Name] = s.Pools[i].Disruption.Allowed[model.Empty]
	}
	receiving := receivers(plan)
	for _, n := range candidates(s) {
		stay := func(why string) {
			plan.Stays = append(plan.Stays, model.Stay{Node: n.Name, Claim: n.Claim, Reason: model.Empty, Why: why})
		}
		buffer, used := receiving[n.Name]
		switch {
		case used && buffer != "":
			plan.Stays = append(plan.Stays, model.Stay{
				Node: n.Name, Claim: n.Claim, Reason: model.Empty, Why: "CapacityBuffer " + buffer + " keeps room on it", Buffer: buffer,
			})
		case used:
			stay("pending pods are planned on it")
		case n.Disruption.Blocked != "":
			stay(n.Disruption.Blocked)
		case budget[n.Pool] <= 0:
			stay(fmt.Sprintf("the disruption budget of nodepool %s allows no more nodes now", n.Pool))
		default:
			budget[n.Pool]--
			plan.Commands = append(plan.Commands, model.Command{
				Reason: model.Empty, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Cost: n.Price, Savings: n.Price,
			})
		}
	}
}

// receivers returns the nodes that pods are planned on: with the first buffer, by
// name, of those that have nothing but room for buffers.
func receivers(plan *model.Plan) map[string]string {
	out := map[string]string{}
	for _, p := range plan.Placements {
		buffer, known := out[p.Node]
		switch {
		case !known, p.Pod.Buffer == "":
			out[p.Node] = p.Pod.Buffer
		case buffer != "":
			out[p.Node] = min(buffer, p.Pod.Buffer)
		}
	}
	return out
}

// candidates returns the empty nodes that have been quiet long enough, dearest
// first.
func candidates(s *model.Snapshot) []*model.Node {
	var out []*model.Node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim != "" && n.Initialized && !n.Deleting && n.Disruption.Empty && n.Disruption.Consolidatable {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(b.Price, a.Price), cmp.Compare(a.Name, b.Name))
	})
	return out
}
