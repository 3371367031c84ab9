// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"math"
	"slices"

	"karpenter/solve/cover"
)

// Of covers that cost at most Policy.NodeCountPremium more than the cheapest one
// found, the one with the fewest nodes is taken, of nodes no larger than a
// fraction of the cover: many small nodes are more work to run and more to pay
// for what is billed per node, and one huge node takes everything with it.

const (
	smallCover  = 20  // nodes: a cover with fewer stays as it is, and no node has room for more than this part of it
	fewerSteps  = 3   // covers that are tried
	fewerShare  = 0.5 // of the budget that is left may be used for them
	firstCharge = 4   // times the charge per node that is sure to cost no more than the premium
	nearly      = 0.8 // of what may be spent: no charge is looked for that gets nearer
)

// fewer returns a cover with fewer nodes than the cheapest, if there is one that
// costs little more. Nodes are charged for on top of their price until those that
// are saved cost what they may. A charge that did for the tier in one plan is tried
// first in the next.
func (m *market) fewer(q *covering, cheapest *cover.Result) *cover.Result {
	least, nodes := q.cost(cheapest), cheapest.Count()
	spare := least * m.policy.NodeCountPremium
	if spare <= 0 || nodes <= smallCover || m.budget.Spent() {
		return cheapest
	}
	defer m.allot(fewerShare)()
	charge, known := m.charges[m.tier.From]
	if !known {
		charge = firstCharge * spare / float64(nodes)
	}
	best := cheapest
	var low, high surcharge
	for range fewerSteps {
		r := cover.Solve(q.charging(charge), cover.Options{Most: math.Inf(1), Known: best.Columns, Values: cheapest.Values, Rough: true}, m.budget)
		more := q.cost(r) - least
		if more <= spare && r.Count() < best.Count() && !r.LeavesMoreThan(cheapest) {
			best, m.charges[m.tier.From] = r, charge
		}
		if more <= spare {
			low = surcharge{charge, more}
		} else {
			high = surcharge{charge, more}
		}
		if known && best != cheapest || low.more > nearly*spare || m.budget.Spent() {
			break
		}
		charge = between(low, high, spare)
	}
	return best
}

// surcharge is a charge and what it costs.
type surcharge struct{ charge, more float64 }

// between returns the charge to try next, given the highest one that cost no more than
// what there is to spare, and the lowest one that did; zero = there is none. What it
// costs grows with the square of a charge, nearly.
func between(low, high surcharge, spare float64) float64 {
	switch {
	case low.charge == 0:
		return high.charge * max(nearly*math.Sqrt(spare/high.more), 1.0/firstCharge)
	case high.charge == 0 && low.more > 0:
		return low.charge * min(max(nearly*math.Sqrt(spare/low.more), 1.2), firstCharge)
	case high.charge == 0:
		return low.charge * firstCharge
	}
	part := (nearly*spare - low.more) / (high.more - low.more)
	return low.charge * math.Pow(high.charge/low.charge, min(max(part, 0.2), 0.8))
}

// cost returns what the nodes of a cover cost.
func (q *covering) cost(r *cover.Result) float64 {
	sum := 0.0
	for _, n := range r.Nodes {
		sum += q.candidates[n.Candidate].price * float64(n.Count)
	}
	return sum
}

// charging returns the problem with so much added to the price of each node. A
// node that has room for more than its part of the whole is charged for as if it
// were several, so that nothing is saved by it.
func (q *covering) charging(charge float64) *cover.Problem {
	p := q.Problem
	p.Candidates = slices.Clone(p.Candidates)
	for i := range p.Candidates {
		p.Candidates[i].Price += charge * max(1, smallCover*q.part(p.Candidates[i].Room))
	}
	return &p
}

// part returns which part of all pods the room of a node is enough for, as far as
// what they request says.
func (q *covering) part(room []int64) float64 {
	least := 1.0
	for r, v := range room {
		all := 0.0
		for i := range q.Items {
			all += float64(q.Items[i].Request[r]) * float64(q.Items[i].Count)
		}
		if all > 0 {
			least = min(least, float64(v)/all)
		}
	}
	return least
}
