// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
)

// candidates returns the sites of the nodes that may be taken away for the
// reason, in the order they are looked at: those first that save most in
// proportion to what they disrupt or, drifted ones, that have been so longest.
func (r *round) candidates(reason model.Reason) []int {
	var out []int
	for i := range r.given.Nodes {
		if r.eligible(&r.s.Nodes[i], reason) {
			out = append(out, i)
		}
	}
	nodes := r.s.Nodes
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

// eligible reports whether the node may be taken away for the reason, budgets
// not asked, and notes why not.
func (r *round) eligible(n *model.Node, reason model.Reason) bool {
	if n.Claim == "" || !n.Initialized || n.Deleting || r.taken[n.Name] {
		return false
	}
	cause, why, asked := r.objection(n, reason)
	if asked && why != "" {
		r.keep(n, reason, cause, why)
	}
	return asked && why == ""
}

// objection returns what keeps the node from being taken away for the reason,
// and whether the reason is one to look at it at all.
func (r *round) objection(n *model.Node, reason model.Reason) (cause model.Cause, why string, asked bool) {
	var pool *model.Pool
	if i, ok := r.pools[n.Pool]; ok {
		pool = &r.s.Pools[i]
	}
	if pool == nil || pool.Static != nil {
		return "", "", false
	}
	empty := n.Disruption.Empty && len(n.Movable) == 0
	switch reason {
	case model.Drifted:
		if n.Disruption.Drifted.IsZero() {
			return "", "", false
		}
	default:
		if empty != (reason == model.Empty) || !n.Disruption.Consolidatable {
			return "", "", false
		}
	}
	if n.Disruption.Blocked != "" {
		return model.ByNode, n.Disruption.Blocked, true
	}
	if reason != model.Drifted && pool.Disruption.Never {
		return model.ByPolicy, fmt.Sprintf("NodePool %q has consolidation disabled: spec.disruption.consolidateAfter is Never", pool.Name), true
	}
	if got, ok := r.receiving[n.Name]; ok && got.keeps(reason) {
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

// keeps reports whether what is planned on the node keeps it from being
// disrupted for the reason. CapacityBuffers give way to drift, or a rollout would
// never reach the nodes that hold their capacity: they get it elsewhere.
func (got receipt) keeps(reason model.Reason) bool {
	return got.buffer == "" || reason != model.Drifted
}

// use says what for the node is kept.
func use(got receipt) string {
	switch {
	case got.buffer != "":
		return "CapacityBuffer " + got.buffer + " keeps room on it"
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
// to being taken away for counts, which is the last.
func (r *round) keep(n *model.Node, reason model.Reason, cause model.Cause, why string) {
	stay := model.Stay{Node: n.Name, Claim: n.Claim, Reason: reason, Cause: cause, Why: why}
	if got := r.receiving[n.Name]; cause == model.ByUse {
		stay.Buffer = got.buffer
	}
	r.refused[n.Name] = stay
}

// overBudget notes that the budgets of its pool keep the node, or its roll-out
// that is halted.
func (r *round) overBudget(n *model.Node, reason model.Reason) {
	why := fmt.Sprintf("the disruption budget of nodepool %s allows no more nodes now", n.Pool)
	if halted := r.s.Pools[r.pools[n.Pool]].Disruption.Halted; halted != "" && reason == model.Drifted {
		why = halted
	}
	r.keep(n, reason, model.ByBudget, why)
}

// tell says of every node that was looked at and is kept, why.
func (r *round) tell() {
	for i := range r.given.Nodes {
		if stay, ok := r.refused[r.given.Nodes[i].Name]; ok && !r.taken[r.given.Nodes[i].Name] {
			r.plan.Stays = append(r.plan.Stays, stay)
		}
	}
}
