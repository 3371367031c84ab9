// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
)

// coverAll launches nodes for what is left of the demands at the least price it
// finds. It reports false when the trial is abandoned.
func (m *market) coverAll(open []*demand) bool {
	q := m.covering(open)
	if len(q.demands) == 0 {
		return true
	}
	o := cover.Unlimited()
	o.Prove = m.trial == nil && m.wishes == nil && !m.stricter()
	if m.trial != nil && m.trial.worth != nil {
		o.Most = m.trial.most
	}
	r := cover.Solve(&q.Problem, o, m.budget)
	if r.Abandoned {
		m.abandoned = whileBuying
		return false
	}
	for i, d := range q.demands {
		if _, known := m.prices[d]; !known {
			m.prices[d] = price{r.Values[i], r.Master[i]}
		}
	}
	if m.trial == nil && !m.anyCount {
		r = m.fewer(q, r)
	}
	m.launchAll(q, r)
	return true
}

// limited reports whether some pool of the tier has limits.
func (m *market) limited() bool {
	return slices.ContainsFunc(m.catalogue.Pools[m.tier.From:m.tier.To], func(p fit.Pool) bool { return len(p.Limits) > 0 })
}

// stranded reports whether limits of the tier leave a pod that no lighter pool is for.
func (m *market) stranded(demands []*demand) bool {
	offers := m.offersIn(m.tier)
	return slices.ContainsFunc(demands, func(d *demand) bool {
		return len(d.left) > 0 && m.catalogue.Fits(d.Demand, offers) && !m.catalogue.Fits(d.Demand, fit.Range{From: offers.To, To: len(m.catalogue.Offers)})
	})
}

// coverScarce replaces what was launched since before, when limits leave pods
// without a node, by nodes that take least of the limits, if that leaves fewer pods.
func (m *market) coverScarce(open []*demand, before mark) {
	byPrice, left := m.mark(), leftOf(open)
	m.rollback(before)
	q := m.covering(open)
	highest := 1.0
	for _, c := range q.candidates {
		highest = max(highest, c.price)
	}
	for i := range q.Candidates {
		c := &q.candidates[i]
		q.Candidates[i].Price = m.limits.share(c.pool, c.capacity) + 1e-6*c.price/highest // price breaks ties
	}
	m.launchAll(q, cover.Solve(&q.Problem, cover.Unlimited(), m.budget))
	if left.atMost(leftOf(open)) {
		m.rollback(byPrice)
	}
}

// bisections is how often coverInTurn tries another number of pods.
const bisections = 6

// coverInTurn replaces what was launched since before, when limits leave pods without a node,
// by nodes for pods of high priority first and, of equal priority, for those that take least of
// the limits, if that leaves fewer pods. It looks for how many of them can all have nodes. It
// reports false when the trial is abandoned.
func (m *market) coverInTurn(open []*demand, before mark) bool {
	other, left := m.mark(), leftOf(open)
	m.rollback(before)
	order, pods := m.inTurn(open)
	all := 0
	for _, d := range order {
		all += len(d.left)
	}
	best, few, many := before, 0, all // all of few can have nodes, not all of many
	for range bisections {
		rest := holdBack(order, pods)
		if !m.coverAll(order) {
			return false
		}
		if m.constrained(order) {
			many = pods
		} else {
			for i, d := range order {
				d.left = slices.Concat(d.left, rest[i])
			}
			best, few = m.mark(), pods
		}
		m.rollback(before)
		if pods = (few + many) / 2; pods == few || m.budget.Spent() {
			break
		}
	}
	m.rollback(best)
	if !m.coverAll(order) {
		return false
	}
	if left.atMost(leftOf(open)) {
		m.rollback(other)
	}
	return true
}

// holdBack leaves only so many pods, the first ones, to the demands. It returns the others, by
// demand.
func holdBack(order []*demand, pods int) [][]model.Pod {
	rest := make([][]model.Pod, len(order))
	for i, d := range order {
		n := min(pods, len(d.left))
		d.left, rest[i], pods = d.left[:n:n], d.left[n:], pods-n
	}
	return rest
}

// inTurn returns the demands in the order of coverInTurn, and how many of their pods the limits
// would be enough for if all nodes were full.
func (m *market) inTurn(open []*demand) (order []*demand, pods int) {
	q := m.covering(open)
	perPod := map[*demand]float64{} // the part of what is left of limits
	m.budget.Spend(len(q.demands) * len(q.candidates))
	for i, d := range q.demands {
		least := math.Inf(1)
		for j := range q.candidates {
			if c := &q.candidates[j]; c.canTake(d) {
				least = min(least, m.limits.share(c.pool, c.capacity)/float64(max(fit.Room(c.free, d.Shape.Requests, q.Items[i].Count), 1)))
			}
		}
		perPod[d] = least
	}
	order = slices.Clone(q.demands)
	slices.SortStableFunc(order, func(a, b *demand) int {
		return cmp.Or(cmp.Compare(b.Shape.Priority, a.Shape.Priority), cmp.Compare(perPod[a], perPod[b]))
	})
	for left, i := 1.0, 0; i < len(order) && left > 0; i++ {
		n := len(order[i].left)
		if all := perPod[order[i]] * float64(n); all > left {
			n = int(left / perPod[order[i]])
		}
		pods, left = pods+n, left-perPod[order[i]]*float64(len(order[i].left))
	}
	return order, pods
}

// unplaced is how many pods have no place, by priority.
type unplaced map[int32]int

// leftOf returns how many pods of the demands have no place.
func leftOf(demands []*demand) unplaced {
	out := unplaced{}
	for _, d := range demands {
		out[d.Shape.Priority] += len(d.left)
	}
	return out
}

// atMost reports whether no more pods have no place than in the other plan. The highest
// priority in which the plans differ decides.
func (u unplaced) atMost(other unplaced) bool {
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(u))) {
		if c := cmp.Compare(u[priority], other[priority]); c != 0 {
			return c < 0
		}
	}
	return true
}

// constrained reports whether a pod is left that some pool of the tier would
// launch a node for if its limits allowed it.
func (m *market) constrained(demands []*demand) bool {
	offers := m.offersIn(m.tier)
	return slices.ContainsFunc(demands, func(d *demand) bool { return len(d.left) > 0 && m.catalogue.Fits(d.Demand, offers) })
}
