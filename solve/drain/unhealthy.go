// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/pack"
)

// unhealthy repairs the nodes that repair policies want repaired, the most severe
// first, each by itself, within budgets. A node that blocks does not hold up the
// next one.
func (r *round) unhealthy() {
	if !slices.ContainsFunc(r.given.Nodes, func(n model.Node) bool { return n.Disruption.Unhealthy != "" }) {
		return
	}
	for _, site := range r.ill() {
		n := &r.s.Nodes[site]
		switch got, receives := r.receiving[n.Name]; {
		case n.Initialized && !r.allowed(model.Unhealthy, site):
			r.overBudget(n, model.Unhealthy)
		case n.Disruption.Reboot:
			r.reboot(site)
		case n.Initialized && receives && got.pending && got.buffer == "":
			r.keep(n, model.Unhealthy, model.ByUse, use(got))
		case r.s.Pools[r.pools[n.Pool]].Static != nil:
			r.turnOver(site, r.turnover(&r.given.Pools[r.pools[n.Pool]]))
		default:
			r.cure(site)
		}
	}
}

// ill returns the sites of the nodes to repair, in the order of their turn.
func (r *round) ill() []int {
	var out []int
	for i := range r.given.Nodes {
		n := &r.s.Nodes[i]
		_, known := r.pools[n.Pool]
		if n.Disruption.Unhealthy != "" && known && n.Claim != "" && n.Registered && !n.Deleting && !r.taken[n.Name] {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		x, y := &r.s.Nodes[a], &r.s.Nodes[b]
		return cmp.Or(cmp.Compare(y.Disruption.Severity, x.Disruption.Severity), cmp.Compare(x.Disruption.Cost, y.Disruption.Cost), strings.Compare(x.Name, y.Name))
	})
	return out
}

// reboot has the node rebooted. Its capacity is expected back, so nothing is
// planned for its pods.
func (r *round) reboot(site int) {
	n := &r.s.Nodes[site]
	r.plan.Commands = append(r.plan.Commands, model.Command{
		Reason: model.Unhealthy, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Cost: n.Price, Reboot: true,
	})
	r.taken[n.Name] = true
	for _, left := range reasons() {
		r.budget[r.pools[n.Pool]][left]--
	}
}

// turnOver replaces an unhealthy node of a static pool by one launch from its
// template, or terminates it first if that is what it takes.
func (r *round) turnOver(site int, left *turnover) {
	n := &r.s.Nodes[site]
	c, cause, why := r.staged(n, model.Unhealthy, left)
	if why != "" {
		r.keep(n, model.Unhealthy, cause, why)
		return
	}
	r.accept(c, []int{site}, nil)
}

// cure replaces an unhealthy node if its pods find places, on nodes that are well.
func (r *round) cure(site int) {
	n := &r.s.Nodes[site]
	t, pending := &pack.Trial{}, n.Movable
	if why := unplaceable(n); why != "" {
		r.keep(n, model.Unhealthy, model.ByPlace, why)
		return
	}
	if len(pending) > 0 {
		r.close(func(n *model.Node) bool {
			return infirm(n) || !n.Disruption.Drifted.IsZero()
		})
		t, pending = r.try(question{sites: []int{site}, most: unlimited}, r.policy)
		if len(t.Left) > 0 {
			r.close(r.leaves)
			t, pending = r.try(question{sites: []int{site}, most: unlimited}, r.policy)
		}
	}
	n = &r.s.Nodes[site]
	c := model.Command{
		Reason: model.Unhealthy, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}},
		Moves: t.Moves, Launches: t.Launches, Cost: n.Price, Savings: n.Price - t.Cost,
	}
	if len(t.Left) > 0 {
		freed, placed, ok := r.terminateFirst(site, model.Unhealthy)
		if !ok {
			r.keep(n, model.Unhealthy, model.ByPlace, homeless(t))
			return
		}
		c, pending = freed, placed
	}
	r.accept(c, []int{site}, pending)
}
