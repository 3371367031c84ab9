// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/work"
)

// decide adds what is taken away, and what is kept and why, to the plan.
func decide(s *model.Snapshot, p model.Policy, memories []fit.Memory, plan *model.Plan) {
	r := &round{
		given: s, s: *s, policy: p, memory: &memories[0], memories: memories, plan: plan, work: work.New(int64(p.Work)),
		pools: map[string]int{}, receiving: receivers(plan), taken: map[string]bool{}, intended: map[string]bool{}, refused: map[string]model.Stay{},
		worth: map[*model.Shape]float64{}, least: map[*model.Shape]float64{}, launched: map[*model.Shape]float64{}, homes: map[*model.Shape][]string{},
	}
	r.s.Nodes, r.s.Pools, r.s.Pending = slices.Clone(s.Nodes), slices.Clone(s.Pools), nil
	for i := range s.Pools {
		r.pools[s.Pools[i].Name] = i
		allowed := map[model.Reason]int{}
		for reason, n := range s.Pools[i].Disruption.Allowed {
			allowed[reason] = n
		}
		r.budget = append(r.budget, allowed)
	}
	r.enter()
	r.unhealthy()
	r.confirm()
	r.empty()
	r.static()
	r.drift()
	r.advised()
	r.consolidate()
	r.tell()
	plan.Exhausted = plan.Exhausted || r.work.Spent()
}

// enter enters what the plan does for pending pods.
func (r *round) enter() {
	if len(r.plan.Placements)+len(r.plan.Launches) == 0 || len(r.given.Nodes) == 0 {
		return
	}
	kinds := kindsOf(r.given.Pending)
	r.move(r.plan.Placements, kinds)
	for i := range r.plan.Launches {
		r.launch(&r.plan.Launches[i], kinds)
	}
}
