// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// permits say which nodes may be removed, and why others may not.
type permits struct {
	*scene
	budget   []map[model.Reason]int // by index in s.Pools
	taken    map[string]bool        // nodes of commands, by name
	intended map[string]bool        // claims of commands that are being confirmed, while they are looked at
	refused  map[string]model.Stay  // why a node is kept, as far as it was looked at, by name
}

// allowed reports whether the budgets of their pools let all nodes be disrupted.
func (may *permits) allowed(reason model.Reason, sites ...int) bool {
	want := map[int]int{}
	for _, i := range sites {
		pool, ok := may.pools[may.s.Nodes[i].Pool]
		if !ok {
			return false
		}
		if want[pool]++; want[pool] > may.budget[pool][reason] {
			return false
		}
	}
	return true
}

// candidates returns the sites of the nodes that may be removed for the
// reason, in the order they are looked at: those first that save most in
// proportion to what they disrupt or, drifted ones, that have been so longest.
func (may *permits) candidates(reason model.Reason) []int {
	var out []int
	for i := range may.given.Nodes {
		if may.eligible(&may.s.Nodes[i], reason) {
			out = append(out, i)
		}
	}
	nodes := may.s.Nodes
	slices.SortStableFunc(out, func(a, b int) int {
		if reason == model.Drifted {
			return cmp.Or(cmp.Compare(min(pods(&nodes[a]), 1), min(pods(&nodes[b]), 1)), nodes[a].Disruption.Drifted.Compare(nodes[b].Disruption.Drifted))
		}
		return cmp.Compare(ratio(&nodes[b]), ratio(&nodes[a]))
	})
	return out
}

// ratio is what a node costs in proportion to what taking it away disrupts.
func ratio(n *model.Node) float64 { return float64(n.Price) / max(n.Disruption.Cost, 1) }

// eligible reports whether the node may be removed for the reason, budgets
// not asked, and notes why not.
func (may *permits) eligible(n *model.Node, reason model.Reason) bool {
	if n.Claim == "" || !n.Initialized && !givenBack(n, reason) || n.Deleting || may.taken[n.Name] {
		return false
	}
	cause, why, asked := may.objection(n, reason)
	if asked && why != "" {
		may.keep(n, reason, cause, why)
	}
	return asked && why == ""
}

// objection returns what keeps the node from being removed for the reason,
// and whether the reason is one to look at it at all.
func (may *permits) objection(n *model.Node, reason model.Reason) (cause model.Cause, why string, asked bool) {
	var pool *model.Pool
	if i, ok := may.pools[n.Pool]; ok {
		pool = &may.s.Pools[i]
	}
	if pool != nil && pool.Static != nil {
		return "", "", false
	}
	empty := n.Disruption.Empty && len(n.Movable) == 0
	switch reason {
	case model.Drifted:
		if n.Disruption.Drifted.IsZero() {
			return "", "", false
		}
	default:
		if empty != (reason == model.Empty) || !n.Disruption.Consolidatable && !givenBack(n, reason) {
			return "", "", false
		}
	}
	if n.Disruption.Blocked != "" {
		return model.ByNode, n.Disruption.Blocked, true
	}
	if pool == nil {
		return model.ByNode, "there is no NodePool " + n.Pool, true
	}
	if reason != model.Drifted && pool.Disruption.Never && !givenBack(n, reason) {
		return model.ByPolicy, fmt.Sprintf("NodePool %q has consolidation disabled: spec.disruption.consolidateAfter is Never", pool.Name), true
	}
	if got, ok := may.receiving[n.Name]; ok && got.keeps(reason) {
		return model.ByUse, use(got), true
	}
	if n.Disruption.Held != "" && (reason != model.Drifted || !n.Disruption.Deadline) {
		return model.ByNode, n.Disruption.Held, true
	}
	if reason == model.Drifted {
		return "", "", true
	}
	if reason == model.Underutilized {
		if n.Disruption.Fresh {
			return model.ByPolicy, "pods on it were moved within the last hour", true
		}
		if why := unknown(n, pool); why != "" {
			return model.ByPolicy, why, true
		}
		if pool.Disruption.Policy == model.WhenEmpty {
			return model.ByPolicy, fmt.Sprintf("NodePool %q has non-empty consolidation disabled: spec.disruption.consolidationPolicy is WhenEmpty", pool.Name), true
		}
	}
	return "", "", true
}

// givenBack reports whether the node goes for the reason whatever its pool says of nodes
// that are disrupted: it was launched for a PodGroup that could not start.
func givenBack(n *model.Node, reason model.Reason) bool {
	return n.Disruption.Returned && n.Registered && reason == model.Empty
}

// keeps reports whether what is planned on the node keeps it from being
// disrupted for the reason. CapacityBuffers give way to drift, or a rollout would
// never reach the nodes that hold their capacity: they get it elsewhere.
func (got receipt) keeps(reason model.Reason) bool {
	return got.buffer == "" || reason != model.Drifted
}

// use says what for the node is kept.
func use(got receipt) string {
	switch {
	case strings.Contains(got.buffer, " "): // its kind and its name
		return got.buffer + " keeps capacity on it"
	case got.buffer != "":
		return "CapacityBuffer " + got.buffer + " keeps capacity on it"
	case got.pending:
		return "pending pods are planned on it"
	}
	return "pods of other nodes go there"
}

// unknown returns what is missing to know what the node costs: a label, or its
// instance type. An offering that is gone costs nothing.
func unknown(n *model.Node, pool *model.Pool) string {
	for _, key := range []string{model.LabelInstanceType, model.LabelCapacityType, model.LabelZone} {
		if _, ok := n.Labels.Value(key); !ok {
			return "the node has no label " + key
		}
	}
	kind, _ := n.Labels.Value(model.LabelInstanceType)
	if n.Price == 0 && !slices.ContainsFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == kind }) {
		return fmt.Sprintf("NodePool %q has no instance type %s", pool.Name, kind)
	}
	return ""
}

// keep notes why the node is kept. Of several reasons the one it came closest
// to being removed for counts, which is the last.
func (may *permits) keep(n *model.Node, reason model.Reason, cause model.Cause, why string) {
	stay := model.Stay{Node: n.Name, Claim: n.Claim, Reason: reason, Cause: cause, Why: why}
	if got := may.receiving[n.Name]; cause == model.ByUse {
		stay.Buffer = got.buffer
	}
	may.refused[n.Name] = stay
}

// overBudget notes that the budgets of its pool keep the node, or its roll-out
// that is halted.
func (may *permits) overBudget(n *model.Node, reason model.Reason) {
	why := fmt.Sprintf("the disruption budget of nodepool %s allows no more nodes now", n.Pool)
	if halted := may.s.Pools[may.pools[n.Pool]].Disruption.Halted; halted != "" && reason == model.Drifted {
		why = halted
	}
	may.keep(n, reason, model.ByBudget, why)
}

// tell says of every node that was looked at and is kept, why.
func (may *permits) tell(plan *model.Plan) {
	for i := range may.given.Nodes {
		if stay, ok := may.refused[may.given.Nodes[i].Name]; ok && !may.taken[may.given.Nodes[i].Name] {
			plan.Stays = append(plan.Stays, stay)
		}
	}
}
