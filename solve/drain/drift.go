// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/pack"
)

// drift removes the nodes that are not what their pool asks for, each by
// itself, once there is a place for its pods.
func (r *round) drift() {
	candidates := r.candidates(model.Drifted)
	if len(candidates) == 0 {
		return
	}
	r.open(model.Drifted)
	for _, i := range candidates {
		n := &r.s.Nodes[i]
		switch got, receives := r.receiving[n.Name]; {
		case r.taken[n.Name]: // with others of its unit
		case !r.allowed(model.Drifted, i):
			r.overBudget(n, model.Drifted)
		case receives && got.keeps(model.Drifted):
			r.keep(n, model.Drifted, model.ByUse, use(got))
		case len(r.whole(i)) == 1 || !r.replaceWhole(i) && n.Disruption.Deadline:
			r.replace(i)
		}
	}
}

// replaceWhole takes the drifted node of the site away together with all others of its
// unit, and reports whether it does.
func (r *round) replaceWhole(site int) bool {
	n, unit := &r.s.Nodes[site], r.whole(site)
	cause, why := r.tied(unit, model.Drifted)
	if why == "" && !r.allowed(model.Drifted, unit...) {
		cause, why = model.ByBudget, "disruption budgets allow fewer nodes now"
	}
	if why != "" {
		r.keep(n, model.Drifted, cause, r.asWhole(site, why))
		return false
	}
	return r.replace(unit...)
}

// replace takes drifted nodes away, all in one command, if their pods find places, and
// reports whether they do. Places on nodes that are drifted themselves are the last resort,
// since the pods would have to move again.
func (r *round) replace(sites ...int) bool {
	c := model.Command{Reason: model.Drifted}
	nodes := make([]model.Node, len(sites))
	for i, site := range sites {
		n := &r.s.Nodes[site]
		nodes[i], c.Cost, c.Nodes = *n, c.Cost+n.Price, append(c.Nodes, model.Target{Node: n.Name, Claim: n.Claim})
		if why := unplaceable(n); why != "" {
			r.stayDrifted(sites, model.ByPlace, why)
			return false
		}
	}
	if why := r.anchored(sites...); why != "" {
		r.stayDrifted(sites, model.ByUse, why)
		return false
	}
	t, pending, halted := &pack.Trial{}, movable(nodes), ""
	if len(pending) > 0 {
		t, pending, halted = r.tryHealthy(sites)
		if len(t.Left) > 0 {
			r.close(r.leaves)
			t, pending, halted = r.tryHealthy(sites)
			r.open(model.Drifted)
		}
	}
	if len(t.Left) > 0 {
		if len(sites) == 1 {
			if c, placed, ok := r.terminateFirst(sites[0], model.Drifted); ok {
				r.accept(c, sites, placed)
				return true
			}
		}
		r.stayDrifted(sites, model.ByPlace, cmp.Or(halted, homeless(t)))
		return false
	}
	c.Moves, c.Launches, c.Savings = t.Moves, t.Launches, c.Cost-t.Cost
	r.accept(c, sites, pending)
	return true
}

// tryHealthy tries to find places for the pods of drifted nodes without launches of pools whose
// instances do not become nodes. Budgets say whether a node of such a pool is replaced by another one
// of it. It also returns why a pool was left out.
func (r *round) tryHealthy(sites []int) (t *pack.Trial, pending []model.Pending, why string) {
	q := question{sites: sites, most: unlimited}
	for {
		t, pending = r.try(q, r.policy)
		others := slices.DeleteFunc(slices.Clone(t.Launches), func(l model.Launch) bool {
			return slices.ContainsFunc(sites, func(i int) bool { return r.s.Nodes[i].Pool == l.Pool })
		})
		pool, halted := r.halted(others)
		if pool == "" {
			return t, pending, why
		}
		q.avoid, why = append(q.avoid, pool), halted
	}
}

// stayDrifted notes why the nodes are not replaced.
func (r *round) stayDrifted(sites []int, cause model.Cause, why string) {
	for _, i := range sites {
		if n := &r.s.Nodes[i]; !n.Disruption.Drifted.IsZero() {
			r.keep(n, model.Drifted, cause, r.asWhole(i, why))
		}
	}
}

// unplaceable returns which pod of the node no plan can place, and why.
func unplaceable(n *model.Node) string {
	for i := range n.Movable {
		if refused := n.Movable[i].Shape.Refused; len(refused) > 0 && len(n.Movable[i].Pods) > 0 {
			return fmt.Sprintf("no other place is found for pod %s with %s", n.Movable[i].Pods[0].Key(), strings.Join(refused, ", "))
		}
	}
	return ""
}

func homeless(t *pack.Trial) string {
	text := fmt.Sprintf("no other place is found for pod %s", t.Left[0].Key())
	if more := len(t.Left) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
