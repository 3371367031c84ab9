// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
)

// confirm looks again at the commands that are being confirmed, and keeps
// those that are still good.
func (r *round) confirm() {
	if len(r.given.Intents) == 0 {
		return
	}
	sites := map[string]int{}
	for i := range r.s.Nodes {
		if claim := r.s.Nodes[i].Claim; claim != "" {
			sites[claim] = i
		}
	}
	for _, intent := range r.given.Intents {
		for _, claim := range intent.Claims {
			r.intended[claim] = true
		}
	}
	defer clear(r.intended)
	for _, intent := range r.given.Intents {
		group := make([]int, 0, len(intent.Claims))
		for _, claim := range intent.Claims {
			if i, ok := sites[claim]; ok && r.eligible(&r.s.Nodes[i], intent.Reason) {
				group = append(group, i)
			}
		}
		if len(group) == 0 || len(group) < len(intent.Claims) {
			continue
		}
		if intent.Reason != model.Empty && !r.isWhole(group) { // an empty node has no pods that must go together
			continue
		}
		if !r.allowed(intent.Reason, group...) && !givenBack(&r.s.Nodes[group[0]], intent.Reason) {
			continue
		}
		slices.Sort(group)
		switch intent.Reason {
		case model.Empty:
			r.remove(group[0])
		case model.Drifted:
			r.open(model.Drifted)
			r.replace(group...)
		case model.Underutilized:
			r.open(model.Underutilized)
			if o := r.rehearsed(r.weigh(group)); o.good() {
				r.take(o)
			}
		}
	}
}
