// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/solve/lp"
	"karpenter/solve/work"
)

// store is what is free on a node there is, as a room that pods are worth something in.
type store struct {
	lp.Knapsack
	demands []int     // by item: position of the demand
	prices  []float64 // of the knapsack's room
}

// relaxation is the Lagrangian relaxation of placing pods: each is paid what it is worth,
// and each node there is takes what is worth most there, whoever else takes the same.
type relaxation struct {
	stores []store
	count  []float64 // by demand: pods to place
	proved []float64 // by demand: what a pod is worth at most, so that no new node is worth more than its price
	part   []float64 // by demand: of that, where the search begins, and then where the bound is highest

	// Beyond mostStored items, nodes are not stored and nothing is searched.
	crowded bool
	beyond  float64 // what the room of the nodes that are not stored is worth where the search begins
}

// worth returns what the room is worth if pods are worth these parts of what was proved.
func (s *store) worth(proved, part []float64) float64 {
	for j, d := range s.demands {
		s.Value[j] = proved[d] * part[d]
	}
	worth, _ := s.RelaxAgain(s.prices)
	return worth
}

// Bounds of the search for worths.
const (
	mostStored = 1 << 19 // items in all stores: some 30 MB
	tries      = 64      // worths that are tried
	patient    = 3       // how many without a better bound until steps are halved
	nearEnough = 1e-3    // of the cost: no bound need be nearer than that
	tryItem    = 16      // steps that an item of a store takes
)

// bound returns what the pods cost at least, of which a plan costs so much. Where
// pods have room on the nodes there are, the worths that were proved are too high: the
// room is worth more than its pods are then. All worths below are as true, and the bound
// is concave in them. So it goes along subgradients, with steps as long as they would be
// if the plan were optimal (Polyak).
func (x *relaxation) bound(cost float64, budget *work.Budget) float64 {
	items := 0
	for i := range x.stores {
		items += len(x.stores[i].demands)
	}
	part := slices.Clone(x.part)
	best, slope := x.at(part)
	if items == 0 || x.crowded {
		return best - x.beyond
	}
	now, length, since := best, 1.0, 0
	for n := 0; n < tries && best < cost*(1-nearEnough) && !budget.Spent(); n++ {
		budget.Spend(tryItem * items)
		norm := 0.0
		for i := range slope {
			if part[i] == 0 && slope[i] < 0 || part[i] == 1 && slope[i] > 0 {
				slope[i] = 0
			}
			norm += slope[i] * slope[i]
		}
		if norm == 0 {
			break
		}
		for i := range part {
			part[i] = min(max(part[i]+length*(cost-now)/norm*slope[i], 0), 1)
		}
		now, slope = x.at(part)
		if since++; now > best {
			best, since, x.part = now, 0, slices.Clone(part)
		}
		if since == patient {
			length, since = length/2, 0
		}
	}
	return best
}

// at returns the bound if pods are worth these parts of what was proved, and by how
// much it rises with each part.
func (x *relaxation) at(part []float64) (sum float64, slope []float64) {
	slope = make([]float64, len(part))
	for i, n := range x.count {
		sum += n * x.proved[i] * part[i]
		slope[i] = n * x.proved[i]
	}
	for i := range x.stores {
		s := &x.stores[i]
		sum -= s.worth(x.proved, part)
		for j, d := range s.demands {
			slope[d] -= s.Taken(j) * x.proved[d]
		}
	}
	return sum, slope
}
