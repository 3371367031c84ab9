// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// share is how many times the work of a plan a look at nodes to remove may take: one
// at 2,000 half-empty nodes needs most of it.
const share = 5.0 / 3

// decide adds what is removed, and what is kept and why, to the plan.
func decide(s *model.Snapshot, p model.Policy, memories []pack.Memory, plan *model.Plan) {
	c := &scene{given: s, s: *s, pools: map[string]int{}, sites: map[string]int{}, memory: &memories[0], receiving: receivers(plan)}
	r := &round{
		inquiry: inquiry{
			estimates: estimates{
				scene: c, worth: map[*model.Shape]float64{}, least: map[*model.Shape]float64{},
				launched: map[*model.Shape]cheapest{}, homes: map[*model.Shape][]string{},
			},
			policy: p, plan: plan, work: work.New(int64(float64(p.Work) * share)),
		},
		permits:  permits{scene: c, taken: map[string]bool{}, intended: map[string]bool{}, refused: map[string]model.Stay{}},
		memories: memories,
	}
	c.s.Nodes, c.s.Pools, c.s.Pending = slices.Clone(s.Nodes), slices.Clone(s.Pools), nil
	for i := range s.Nodes {
		c.sites[s.Nodes[i].Name] = i
	}
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
	r.tell(plan)
	plan.Exhausted = plan.Exhausted || r.work.Spent()
}

// enter enters what the plan does for pending pods.
func (r *round) enter() {
	if len(r.plan.Placements)+len(r.plan.Launches) == 0 || len(r.given.Nodes) == 0 {
		return
	}
	kinds := kindsOf(r.given.Pending)
	r.lodge(r.plan.Placements, kinds)
	r.move(r.plan.Placements, kinds)
	for i := range r.plan.Launches {
		r.launch(&r.plan.Launches[i], kinds)
	}
}

// lodge notes where pods are planned that stand in for buffers.
func (sc *scene) lodge(placements []model.Placement, kinds map[string]*model.Pending) {
	sc.lodgers.at = map[int][]*model.Pending{}
	for i := range placements {
		if p := &placements[i]; p.Pod.Buffer != "" {
			site, kind := sc.sites[p.Node], kinds[keyOf(&p.Pod)]
			sc.lodgers.at[site] = append(sc.lodgers.at[site], kind)
			if !slices.Contains(sc.lodgers.shapes, kind.Shape) {
				sc.lodgers.shapes = append(sc.lodgers.shapes, kind.Shape)
			}
		}
	}
}
