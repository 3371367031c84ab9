// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/solve/lp"
	"karpenter/solve/work"
)

// store is what is free on a node there is, as a room that pods are worth something in.
type store struct {
	lp.Knapsack
	pieces []int     // by item
	prices []float64 // of the knapsack's room
}

// relaxation is the Lagrangian relaxation of placing pods: each is paid what it is worth,
// and each node there is takes what is worth most there, whoever else takes the same.
type relaxation struct {
	stores []store
	of     [][]fraction // by demand: its pieces
	proved []float64    // by piece: what a pod is worth at most, so that no new node is worth more than its price
	first  []float64    // what part was where the search began
	part   []float64    // by piece: of that, where the search begins, and then where the bound is highest

	// Beyond mostStored items, nodes are not stored and nothing is searched.
	crowded bool
	beyond  float64 // what the room of the nodes that are not stored is worth where the search begins
}

// fraction is a piece of a demand with how many pods it has at least and at most. All
// pieces of the demand have pods of them together.
type fraction struct {
	at                int // position of the piece
	least, most, pods float64
}

// divided adds the pieces of a demand. Where no node can be launched for a pod, it is worth
// as much as where it is worth most.
func (x *relaxation) divided(all *division, part float64) []fraction {
	if all == nil {
		return nil
	}
	pods, dearest := float64(all.pods), 0.0
	var out []fraction
	for _, p := range all.pieces {
		if !math.IsInf(p.worth, 1) {
			dearest = max(dearest, p.worth)
		}
		out = append(out, fraction{len(x.proved), float64(p.low), float64(p.high), pods})
		x.proved, x.part = append(x.proved, p.worth), append(x.part, part)
	}
	if len(all.pieces) > 1 {
		out = append(out, fraction{len(x.proved), 0, float64(all.others), pods})
		x.proved, x.part = append(x.proved, math.Inf(1)), append(x.part, part)
	}
	for _, f := range out {
		x.proved[f.at] = min(x.proved[f.at], dearest)
	}
	return out
}

// with returns the relaxation with what the pieces are worth now, and the parts with which
// its search begins; nil = all of it.
func (x *relaxation) with(demands []*demand, divided map[*demand]*division, first []float64) *relaxation {
	out := &relaxation{stores: x.stores}
	for _, d := range demands {
		out.of = append(out.of, out.divided(divided[d], 1))
	}
	if first != nil {
		copy(out.part, first)
	}
	return out
}

// worths returns what a pod of each piece is worth where the bound is highest.
func (x *relaxation) worths(demands []*demand, divided map[*demand]*division) map[*piece]float64 {
	out := map[*piece]float64{}
	for i, d := range demands {
		if all := divided[d]; all != nil {
			for j, p := range all.pieces {
				at := x.of[i][j].at
				out[p] = x.proved[at] * x.part[at]
			}
		}
	}
	return out
}

// spread returns how many pods are in each piece of a demand where they are worth least
// together.
func (x *relaxation) spread(demand int, part []float64) []float64 {
	all := x.of[demand]
	out, order, left := make([]float64, len(all)), make([]int, len(all)), 0.0
	for i, f := range all {
		out[i], order[i], left = f.least, i, f.pods
	}
	for _, n := range out {
		left -= n
	}
	worth := func(i int) float64 { return x.proved[all[i].at] * part[all[i].at] }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worth(a), worth(b)) })
	for _, i := range order {
		n := min(all[i].most-all[i].least, left)
		out[i], left = out[i]+n, left-n
	}
	return out
}

// cheapest returns what a pod of a demand is worth on average where they are worth least.
func (x *relaxation) cheapest(demand int) float64 {
	sum, pods := 0.0, 0.0
	for i, n := range x.spread(demand, x.part) {
		f := x.of[demand][i]
		sum, pods = sum+n*x.proved[f.at]*x.part[f.at], f.pods
	}
	return sum / max(pods, 1)
}

// value sets what pods are worth: these parts of what was proved.
func (s *store) value(proved, part []float64) {
	for j, p := range s.pieces {
		s.Value[j] = proved[p] * part[p]
	}
}

// worth returns what the room is worth if pods are worth these parts of what was proved.
func (s *store) worth(proved, part []float64) float64 {
	s.value(proved, part)
	worth, _ := s.RelaxAgain(s.prices)
	return worth
}

// fill returns what the room is worth, and takes from the slope what fills it.
func (s *store) fill(proved, part, slope []float64) float64 {
	worth := s.worth(proved, part)
	for j, p := range s.pieces {
		slope[p] -= s.Taken(j) * proved[p]
	}
	return worth
}

// whole returns the bound where it was found to be highest, but with nodes that take few
// fractions of pods: large ones leave much of a node as it is. It is 0 if the budget does
// not last for that.
func (x *relaxation) whole(budget *work.Budget) float64 {
	steps := 0
	for i := range x.stores {
		steps += branchItem * branches * len(x.stores[i].pieces)
	}
	if x.crowded || budget.Left() < int64(steps) {
		return 0
	}
	budget.Spend(steps)
	sum, b := x.paid(x.part), lp.Brancher{}
	for i := range x.stores {
		x.stores[i].value(x.proved, x.part)
		worth, _ := b.Most(&x.stores[i].Knapsack, branches)
		sum -= worth
	}
	return sum
}

// Bounds of the search for worths.
const (
	mostStored = 1 << 19 // items in all stores: some 30 MB
	tries      = 24      // worths that are tried
	walks      = 2       // from one to the next
	strides    = 16      // of a walk
	patient    = 3       // how many without a better bound until steps are halved
	nearEnough = 1e-3    // of the cost: no bound need be nearer than that
	tryItem    = 8       // steps that an item of a store takes
	branches   = 8       // of a store, so that few pods are fractions
	branchItem = 4       // steps that an item takes in a branch
	wholeShare = 0.1     // of the proof's budget, for these
)

// bound returns what the pods cost at least, of which a plan costs so much. Where
// pods have room on the nodes there are, the worths that were proved are too high: the
// room is worth more than its pods are then. All worths below are as true, and the bound
// is concave in them. So it goes along subgradients, with steps as long as they would be
// if the plan were optimal (Polyak): at most so many. Each is a walk in small steps, of
// which each sees a part of the stores only, at the worths that those before led to (the
// incremental subgradient method).
func (x *relaxation) bound(cost float64, tries int, budget *work.Budget) float64 {
	items := 0
	for i := range x.stores {
		items += len(x.stores[i].pieces)
	}
	part := slices.Clone(x.part)
	x.first = slices.Clone(x.part)
	best, slope := x.at(part)
	if items == 0 || x.crowded {
		return best - x.beyond
	}
	now, length, since := best, 1.0, 0
	for n := 0; n < tries && best < cost*(1-nearEnough) && !budget.Spent(); n++ {
		budget.Spend((1 + walks) * tryItem * items)
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
		for range walks {
			x.walk(part, length*(cost-now)/norm)
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

// walk changes the parts along subgradients of some stores after those of others, all
// together by the step.
func (x *relaxation) walk(part []float64, step float64) {
	share, slope := make([]float64, len(part)), make([]float64, len(part))
	for d, all := range x.of {
		for i, n := range x.spread(d, part) {
			share[all[i].at] = n * x.proved[all[i].at] / strides
		}
	}
	for from := range strides {
		copy(slope, share)
		for i := from; i < len(x.stores); i += strides {
			x.stores[i].fill(x.proved, part, slope)
		}
		for i := range part {
			part[i] = min(max(part[i]+step*slope[i], 0), 1)
		}
	}
}

// paid returns what all pods are worth if each is worth these parts of what was proved.
func (x *relaxation) paid(part []float64) (sum float64) {
	for d, all := range x.of {
		for i, n := range x.spread(d, part) {
			sum += n * x.proved[all[i].at] * part[all[i].at]
		}
	}
	return sum
}

// at returns the bound if pods are worth these parts of what was proved, and by how
// much it rises with each part.
func (x *relaxation) at(part []float64) (sum float64, slope []float64) {
	sum, slope = x.paid(part), make([]float64, len(part))
	for d, all := range x.of {
		for i, n := range x.spread(d, part) {
			slope[all[i].at] = n * x.proved[all[i].at]
		}
	}
	for i := range x.stores {
		sum -= x.stores[i].fill(x.proved, part, slope)
	}
	return sum, slope
}
