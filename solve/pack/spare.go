// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
)

// A plan that honors preferences costs at most a share more than the one that
// ignores them, or an amount per hour, whichever is more. NodePools can override
// both. What the nodes of a NodePool with its own values cost then also rises by
// no more than these values allow, whatever the other NodePools may spend.

// spare returns how much more than the plan that ignores the wishes a plan may
// cost that grants them.
func (q *problem) spare(wishes []wish, ignoring *model.Plan) model.Price {
	costs, relative, amount := costByPool(ignoring), model.Price(0), model.Price(0)
	for i := range q.catalogue.Pools {
		premium, allowance := q.aims(q.catalogue.Pools[i].Pool)
		relative += model.Price(float64(costs[q.catalogue.Pools[i].Name]) * premium)
		amount = max(amount, allowance)
	}
	if !spreads(wishes) {
		return relative
	}
	return max(relative, amount)
}

// overspent returns the NodePools with their own values whose new nodes cost more
// than these allow.
func (q *problem) overspent(wishes []wish, plan, ignoring *model.Plan) []string {
	var out []string
	var costs, before map[string]model.Price
	for i := range q.catalogue.Pools {
		p := q.catalogue.Pools[i].Pool
		if p.Aims.PreferencePremium == nil && p.Aims.PreferenceAllowance == nil {
			continue
		}
		if costs == nil {
			costs, before = costByPool(plan), costByPool(ignoring)
		}
		premium, allowance := q.aims(p)
		most := model.Price(float64(before[p.Name]) * premium)
		if spreads(wishes) {
			most = max(most, allowance)
		}
		if costs[p.Name] > before[p.Name]+most {
			out = append(out, p.Name)
		}
	}
	return out
}

// cheapHalfIn is cheapHalf among the wishes of pods that get new nodes of the
// NodePools. If there are none, it is cheapHalf.
func (q *problem) cheapHalfIn(pools []string, wishes []wish, plan *model.Plan) []wish {
	kindOf := map[string]int{}
	for kind := range q.snapshot.Pending {
		for _, p := range q.snapshot.Pending[kind].Pods {
			kindOf[p.Key()] = kind
		}
	}
	there := map[int]bool{}
	for i := range plan.Launches {
		if slices.Contains(pools, plan.Launches[i].Pool) {
			for _, p := range plan.Launches[i].Pods {
				there[kindOf[p.Key()]] = true
			}
		}
	}
	in := func(w wish) bool { return there[w.kind] }
	among := slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool { return !in(w) })
	if len(among) == 0 {
		return cheapHalf(wishes)
	}
	dropped := len(among) - len(cheapHalf(among)) // they come first
	return slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool {
		if dropped > 0 && in(w) {
			dropped--
			return true
		}
		return false
	})
}

// aims returns what counts for the pool: its own values, or those of the policy.
// The allowance is for spreading: to be on nodes of some kind is worth no more in
// a small cluster than in a large one. A trial has none: that pods could be spread better
// is no reason to keep a node.
func (q *problem) aims(p *model.Pool) (premium float64, allowance model.Price) {
	premium, allowance = q.policy.PreferencePremium, q.policy.PreferenceAllowance
	if own := p.Aims.PreferencePremium; own != nil {
		premium = *own
	}
	if own := p.Aims.PreferenceAllowance; own != nil {
		allowance = *own
	}
	if q.trial != nil {
		allowance = 0
	}
	return premium, allowance
}

// spreads reports whether all wishes are about where pods run relative to others.
func spreads(wishes []wish) bool {
	return !slices.ContainsFunc(wishes, func(w wish) bool { return w.list == inPreferences })
}

func costByPool(p *model.Plan) map[string]model.Price {
	out := map[string]model.Price{}
	for i := range p.Launches {
		out[p.Launches[i].Pool] += p.Launches[i].Price
	}
	return out
}
