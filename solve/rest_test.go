// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/model"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestRestIsCheap carries out plans for clusters in which nothing but prices
// keeps nodes, and compares what they cost at rest with what the same pods
// would cost on new nodes alone.
func TestRestIsCheap(t *testing.T) {
	tried, dear, sum := 0, 0, 0.0
	from := cmp.Or(*first, drawn())
	for seed := from; seed < from+200**seeds; seed++ {
		s := calm(solvetest.Draw{Bound: true, Crowd: true}.Situation(rand.New(rand.NewPCG(seed, 7))))
		fresh := *s
		fresh.Nodes = nil
		for i := range s.Nodes {
			fresh.Pending = append(fresh.Pending, s.Nodes[i].Movable...)
		}
		anew := solve.Decide(&fresh, model.DefaultPolicy())
		if len(anew.Verdicts) > 0 || anew.Cost == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 8))
		for range rounds {
			plan := solve.Decide(s, model.DefaultPolicy())
			if len(plan.Commands) == 0 {
				break
			}
			s = solvetest.Apply(rng, s, plan)
		}
		ratio := float64(solvetest.Spent(s)) / float64(anew.Cost)
		tried++
		sum += ratio
		if ratio > 1.15 {
			dear++
		}
	}
	t.Logf("%d clusters from seed %d: on average %.3f of the price of planning anew, %d above 1.15", tried, from, sum/float64(tried), dear)
	most := float64(tried) / 20
	if sum/float64(tried) > 1 || float64(dear) > most+3*math.Sqrt(most) { // one in twenty, and what chance adds to that
		t.Errorf("at rest %d clusters cost %.3f of planning anew, %d of them more than 1.15; seed %d", tried, sum/float64(tried), dear, from)
	}
}

// calm leaves of a situation what can be consolidated at will: on-demand nodes
// with their pods, in pools that allow everything.
func calm(s *model.Snapshot) *model.Snapshot {
	s.Pending = nil
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Static, p.Unavailable, p.Limits, p.Weight, p.Usage = nil, "", nil, 0, nil
		p.Disruption = model.Disruption{Allowed: map[model.Reason]int{model.Empty: 100, model.Underutilized: 100}}
		for _, kind := range p.Types {
			kind.Offerings = slices.DeleteFunc(kind.Offerings, func(o model.Offering) bool { return o.CapacityType != model.OnDemand })
		}
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n model.Node) bool {
		_, known := n.Labels.Value(model.LabelZone)
		return n.Claim == "" || n.Deleting || !known
	})
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Initialized = true
		n.Disruption = model.NodeDisruption{Consolidatable: true, Cost: n.Disruption.Cost, Empty: len(n.Movable) == 0}
	}
	return s
}
