// SPDX-License-Identifier: Apache-2.0

package deletioncost

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"karpenter/model"
)

// leaving is the deletion cost of pods on nodes that are being removed: the lowest.
const leaving = math.MinInt32

// wish is the annotation that the pods of a node should have; "" is no
// annotation.
type wish struct {
	node *model.Node
	cost string
}

// wishes holds the annotations to write, by urgency.
type wishes struct {
	leaving []wish // nodes that are being removed
	ranked  []wish // nodes that may be disrupted, the first to go first
	others  []wish // nodes that stay
}

// rank returns the annotation for the pods of each node. Pinned reports whether
// pods keep a node that scaling down ReplicaSets does not move.
func rank(s *model.Snapshot, pinned func(node string) bool) wishes {
	var out wishes
	var drifted, usual []*model.Node
	pools := map[string]*model.Pool{}
	for i := range s.Pools {
		pools[s.Pools[i].Name] = &s.Pools[i]
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch pool := pools[n.Pool]; {
		case n.Claim == "":
		case n.Deleting || disrupted(n):
			out.leaving = append(out.leaving, wish{n, strconv.Itoa(leaving)})
		case pool == nil || !n.Initialized || n.Disruption.Blocked != "" || n.Disruption.Held != "" || n.Price == 0 || pinned(n.Name):
			out.others = append(out.others, wish{n, ""})
		case !n.Disruption.Drifted.IsZero() && pool.Static == nil:
			drifted = append(drifted, n)
		case !pool.Disruption.Never:
			usual = append(usual, n)
		default:
			out.others = append(out.others, wish{n, ""})
		}
	}
	var order []*model.Node
	for _, group := range []struct {
		nodes  []*model.Node
		reason model.Reason
	}{{drifted, model.Drifted}, {usual, model.Underutilized}} {
		slices.SortFunc(group.nodes, func(a, b *model.Node) int {
			return cmp.Or(cmp.Compare(ratio(b), ratio(a)), cmp.Compare(a.Name, b.Name))
		})
		taken := map[string]int{}
		for _, n := range group.nodes {
			if taken[n.Pool] >= pools[n.Pool].Disruption.Allowed[group.reason] {
				out.others = append(out.others, wish{n, ""})
				continue
			}
			taken[n.Pool]++
			order = append(order, n)
		}
	}
	for i, n := range order {
		out.ranked = append(out.ranked, wish{n, strconv.Itoa(i - len(order))})
	}
	return out
}

// ratio is what a node costs in proportion to what removing it disrupts.
func ratio(n *model.Node) float64 { return float64(n.Price) / max(n.Disruption.Cost, 1) }

func disrupted(n *model.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t model.Taint) bool { return t.Key == "karpenter.sh/disrupted" })
}
