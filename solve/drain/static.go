// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// static replaces drifted nodes of static pools, each by one launch straight from
// its pool's template, whatever pods there are, so that the number of nodes stays
// what the pool asks for. Of each pool, nodes go without pods first, then those
// that drifted first, as many as all of these allow:
//
//   - its budget for drift;
//   - its limit of nodes, which what is leaving counts towards, and what its
//     scale-up is still to bring: replacements come before the node goes;
//   - its replicas: a pool that has too many nodes is scaled down first. Nodes
//     of commands under way do not count as too many.
func (r *round) static() {
	drifted := r.driftedOfStatic()
	for i := range r.given.Pools {
		p := &r.given.Pools[i]
		if len(drifted[p.Name]) == 0 {
			continue
		}
		left := r.turnover(p)
		for _, site := range drifted[p.Name] {
			n := &r.s.Nodes[site]
			if cause, why := r.holds(site); why != "" {
				r.keep(n, model.Drifted, cause, why)
			} else if left.why == "" && !r.allowed(model.Drifted, site) {
				r.overBudget(n, model.Drifted)
			} else if c, cause, why := r.staged(n, model.Drifted, left); why != "" {
				r.keep(n, model.Drifted, cause, why)
			} else {
				r.accept(c, []int{site}, nil)
			}
		}
	}
}

// driftedOfStatic returns by pool the sites of the drifted nodes of static
// pools, in the order in which they are to go.
func (r *round) driftedOfStatic() map[string][]int {
	out := map[string][]int{}
	for i := range r.given.Nodes {
		n := &r.s.Nodes[i]
		pool, known := r.pools[n.Pool]
		if known && r.given.Pools[pool].Static != nil && n.Claim != "" && n.Initialized && !n.Deleting && !n.Disruption.Drifted.IsZero() {
			out[n.Pool] = append(out[n.Pool], i)
		}
	}
	for _, sites := range out {
		slices.SortStableFunc(sites, func(a, b int) int {
			x, y := &r.s.Nodes[a], &r.s.Nodes[b]
			return cmp.Or(r.gives(x)-r.gives(y), cmp.Compare(min(pods(x), 1), min(pods(y), 1)), x.Disruption.Drifted.Compare(y.Disruption.Drifted))
		})
	}
	return out
}

// gives returns 0 for nodes that leave a slot in a full reservation, which go
// first where that is what replacements wait for, and 1 for others.
func (r *round) gives(n *model.Node) int {
	p := &r.given.Pools[r.pools[n.Pool]]
	if r.policy.TerminateFirstDrift && isReserved(n) && slices.ContainsFunc(fullOfferings(p), func(o *model.Offering) bool { return takesFrom(n, o) }) {
		return 0
	}
	return 1
}

// holds returns what about the node of the site itself keeps it.
func (r *round) holds(site int) (model.Cause, string) {
	n := &r.s.Nodes[site]
	got, receives := r.receiving[n.Name]
	switch d := &n.Disruption; {
	case d.Blocked != "":
		return model.ByNode, d.Blocked
	case d.Held != "" && !d.Deadline:
		return model.ByNode, d.Held
	case len(r.whole(site)) > 1 && !d.Deadline:
		return model.ByNode, r.asWhole(site, "its NodePool is static")
	case receives && got.buffer == "":
		return model.ByUse, use(got)
	}
	return "", ""
}
