// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/work"
)

// Parts of the budget that is left.
const (
	proofShare  = 0.2 // for the proof
	ignoreShare = 0.5 // for the plan that ignores preferences
)

// Place places the pending pods of s within the budget and returns the plan.
// What it compiles it leaves in m.
func Place(s *model.Snapshot, p model.Policy, m *Memory, budget *work.Budget) *model.Plan {
	q := newProblem(problem{terms: terms{policy: p}, memory: m, budget: budget}, s)
	proof := budget.Part(proofShare)
	whole := q.allot(1 - proofShare)
	ignoring, out := best(q)
	whole()
	ignoring.draft.budget = proof // however much was spent on the plan
	// What only the plan that honors preferences reads as the scheduler does, the
	// bound must allow, too.
	ignoring.draft.final = ignoring.draft.final || out.draft.final
	out.plan.Bound = bound(ignoring.draft, out.draft)
	budget.Return(proof)
	out.draft.budget = budget
	separated := separate(out)
	if disperse(out) || separated {
		useRoom(out)
	}
	return out.plan
}

// useRoom places pods that are left on nodes that have room for them now that others were moved.
func useRoom(out *outcome) {
	x := out.draft
	before, left := x.mark(), x.podsLeft()
	if left == 0 {
		return
	}
	repair{x}.topUp()
	repair{x}.prune()
	repair{x}.insertAll()
	repair{x}.sharers()
	repair{x}.gatherLeft()
	if x.podsLeft() >= left || !standsUnwished(x) || !(repair{x}).confirm() {
		x.rollback(before)
		return
	}
	out.placeAgain()
}

// best places what it can, as the policy has it for preferences. It also returns
// the outcome that ignores them.
func best(q *problem) (ignoring, out *outcome) {
	ignoring = ignoringWishes(q)
	if out = honoring(q, ignoring); out == ignoring && ignoring.draft.anyCount && len(ignoring.plan.Launches) > smallCover && !q.budget.Spent() {
		few := conclude(build(q))
		if few.draft.podsLeft() <= ignoring.draft.podsLeft() && float64(few.plan.Cost) <= float64(ignoring.plan.Cost)*(1+q.policy.NodeCountPremium) {
			return few, few
		}
	}
	return ignoring, out
}

// ignoringWishes places what it can, and ignores preferences. If there are any, the nodes
// may be more than needed.
func ignoringWishes(q *problem) *outcome {
	if !q.wishful() {
		return conclude(build(q))
	}
	cheapest := *q
	cheapest.anyCount = true
	return conclude(buildWithPart(ignoreShare, &cheapest))
}

// honoring returns the outcome that honors preferences as the policy has it, given the
// one that ignores them.
func honoring(q *problem, ignoring *outcome) *outcome {
	if q.policy.IgnorePreferences || ignoring.draft.abandoned != inProgress {
		return ignoring
	}
	return honour(q, ignoring)
}

// wishful reports whether some pod has preferences that are to be honored.
func (q *problem) wishful() bool {
	return !q.policy.IgnorePreferences && slices.ContainsFunc(q.snapshot.Pending, func(p model.Pending) bool {
		return len(p.Shape.Preferences) > 0 || slices.ContainsFunc(p.Shape.Spread, func(s model.Spread) bool { return s.Soft }) ||
			slices.ContainsFunc(p.Shape.PodTerms, func(t model.PodTerm) bool { return t.Weight > 0 })
	})
}
