// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
	"slices"

	"karpenter/solve/work"
)

// mostRanked is how many groups the master problem knows: each is one more
// dimension of every room. Those with most pods matter most; nodes respect all.
const mostRanked = 4

// groups are those that the master problem knows. Items that are all kept apart
// from each other are a group, too, of which a node takes one pod.
type groups struct {
	*Problem
	ranked  []int // with most pods: at or above len(Groups) they are cliques
	cliques []int // by item: the clique it is in; -1 = none
}

func newGroups(p *Problem, budget *work.Budget) groups {
	gs := groups{Problem: p}
	pods := make([]int, len(p.Groups))
	for i := range p.Items {
		for _, g := range p.Items[i].Groups {
			pods[g] += p.Items[i].Count
		}
	}
	pods = gs.findCliques(pods, budget)
	for g, n := range pods {
		if n > 0 {
			gs.ranked = append(gs.ranked, g)
		}
	}
	slices.SortStableFunc(gs.ranked, func(a, b int) int { return cmp.Compare(pods[b], pods[a]) })
	gs.ranked = gs.ranked[:min(len(gs.ranked), mostRanked)]
	return gs
}

// findCliques divides the items that are kept apart, from their own pods too, into
// cliques, each item into the first that it is kept apart from all members of,
// and appends how many pods each clique has.
func (gs *groups) findCliques(pods []int, budget *work.Budget) []int {
	gs.cliques = make([]int, len(gs.Items))
	for i := range gs.cliques {
		gs.cliques[i] = -1
	}
	for i := range gs.Items {
		if gs.Items[i].Apart == nil || gs.Items[i].Most != 1 || gs.cliques[i] >= 0 {
			continue
		}
		members, common := []int{i}, slices.Clone(gs.Items[i].Apart)
		for j := range gs.Items[i].Apart.All() {
			if j > i && gs.cliques[j] < 0 && common.Has(j) && gs.Items[j].Apart != nil && gs.Items[j].Most == 1 {
				members, common = append(members, j), common.And(gs.Items[j].Apart)
				budget.Spend(len(common))
			}
		}
		if len(members) < 2 {
			continue
		}
		sum := 0
		for _, j := range members {
			gs.cliques[j] = len(pods)
			sum += gs.Items[j].Count
		}
		pods = append(pods, sum)
	}
	return pods
}

// has reports whether the item counts in the ranked group or clique.
func (gs *groups) has(item, g int) bool {
	if g >= len(gs.Groups) {
		return gs.cliques[item] == g
	}
	return slices.Contains(gs.Items[item].Groups, g)
}
