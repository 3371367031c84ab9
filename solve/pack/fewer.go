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
)

// fewer returns a cover with fewer nodes than the cheapest, if there is one that
// costs little more. Nodes are charged for on top of their price until those that
// are saved cost what they may.
func (m *market) fewer(q *covering, cheapest *cover.Result) *cover.Result {
	most, nodes := q.cost(cheapest)*(1+m.policy.NodeCountPremium), cheapest.Count()
	if most <= q.cost(cheapest) || nodes <= smallCover {
		return cheapest
	}
	defer m.allot(fewerShare)()
	best, charge := cheapest, firstCharge*(most-q.cost(cheapest))/float64(nodes)
	for range fewerSteps {
		r := cover.Solve(q.charging(charge), cover.Options{Most: math.Inf(1), Known: best.Columns, Values: cheapest.Values, Rough: true}, m.budget)
		if q.cost(r) <= most && r.Count() < best.Count() && !r.LeavesMoreThan(cheapest) {
			best = r
		}
		if m.budget.Spent() {
			break
		}
		step := float64(firstCharge) // the cost grows with the square of the charge, nearly
		if more := q.cost(r) - q.cost(cheapest); more > 0 {
			step = 0.95 * math.Sqrt((most-q.cost(cheapest))/more)
		}
		charge *= min(max(step, 1.0/firstCharge), firstCharge)
	}
	return best
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
