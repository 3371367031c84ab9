// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// whole returns the sites of the nodes that are removed only together with that of the
// site, sorted: it, those with pods of its PodGroups whose pods are disrupted together, those
// with pods of their PodGroups, and so on.
func (sc *scene) whole(site int) []int {
	if len(sc.given.Nodes[site].Disruption.Together) == 0 {
		return []int{site}
	}
	if sc.units == nil {
		sc.units = unitsOf(sc.given.Nodes)
	}
	return sc.units[site]
}

// unitsOf returns the units of nodes with such PodGroups, by site.
func unitsOf(nodes []model.Node) map[int][]int {
	with := map[string][]int{}
	for i := range nodes {
		for _, group := range nodes[i].Disruption.Together {
			with[group] = append(with[group], i)
		}
	}
	out := map[int][]int{}
	for i := range nodes {
		if len(nodes[i].Disruption.Together) == 0 || out[i] != nil {
			continue
		}
		unit, in := []int{i}, map[int]bool{i: true}
		for next := 0; next < len(unit); next++ {
			for _, group := range nodes[unit[next]].Disruption.Together {
				for _, j := range with[group] {
					if !in[j] {
						unit, in[j] = append(unit, j), true
					}
				}
				delete(with, group)
			}
		}
		slices.Sort(unit)
		for _, j := range unit {
			out[j] = unit
		}
	}
	return out
}

// isWhole reports whether all nodes are among the sites that are removed only together with
// one of the sites.
func (sc *scene) isWhole(sites []int) bool {
	return !slices.ContainsFunc(sites, func(i int) bool {
		return slices.ContainsFunc(sc.whole(i), func(j int) bool { return !slices.Contains(sites, j) })
	})
}

// asWhole says in a reason why the node of the site is kept that it goes only together with
// others.
func (sc *scene) asWhole(site int, why string) string {
	unit := sc.whole(site)
	if len(unit) == 1 {
		return why
	}
	return fmt.Sprintf("PodGroup %s is disrupted only as a whole, with %d nodes: %s", sc.given.Nodes[site].Disruption.Together[0], len(unit), why)
}

// tied returns what keeps one of the nodes of a unit from being removed for the reason,
// budgets not asked; "" = nothing does. Nodes that have not drifted go with those that have.
func (may *permits) tied(unit []int, reason model.Reason) (model.Cause, string) {
	for _, g := range may.given.Groups {
		if g.Running < g.MinCount && slices.ContainsFunc(unit, func(i int) bool { return slices.Contains(may.given.Nodes[i].Disruption.Together, g.Name) }) {
			return model.ByNode, fmt.Sprintf("%d of its %d pods run", g.Running, g.MinCount)
		}
	}
	for _, i := range unit {
		n := &may.s.Nodes[i]
		if cause, why := may.ties(n, reason); why != "" {
			return cause, fmt.Sprintf("node %s stays, since %s", n.Name, why)
		}
	}
	return "", ""
}

// ties is tied for one node.
func (may *permits) ties(n *model.Node, reason model.Reason) (model.Cause, string) {
	pool, known := may.pools[n.Pool]
	got, receives := may.receiving[n.Name]
	switch d := &n.Disruption; {
	case n.Claim == "" || !known:
		return model.ByNode, "Karpenter does not manage it"
	case n.Deleting || may.taken[n.Name]:
		return model.ByNode, "it is being removed"
	case !n.Initialized:
		return model.ByNode, "it is not initialized"
	case may.s.Pools[pool].Static != nil:
		return model.ByPolicy, fmt.Sprintf("NodePool %q is static", n.Pool)
	case reason == model.Underutilized:
		cause, why, asked := may.objection(n, reason)
		if !asked {
			return model.ByPolicy, "it has not been quiet for long enough"
		}
		return cause, why
	case d.Blocked != "":
		return model.ByNode, d.Blocked
	case d.Held != "" && !d.Deadline:
		return model.ByNode, d.Held
	case receives && got.keeps(reason):
		return model.ByUse, use(got)
	}
	return "", ""
}
