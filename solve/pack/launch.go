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
	var r *cover.Result
	if m.curbed { // without limits it took too much before
		r = cover.Solve(&q.Problem, o, m.budget)
	} else {
		r = m.cover(q, &q.Problem, o)
	}
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

// cover solves the problem: as if there were no limits and, if that takes more than they leave,
// within them.
func (m *market) cover(q *covering, p *cover.Problem, o cover.Options) *cover.Result {
	if !m.limits.any(m.tier) {
		return cover.Solve(p, o, m.budget)
	}
	free := *p
	free.Limits = slices.Repeat([]int64{math.MaxInt64}, len(p.Limits))
	r := cover.Solve(&free, o, m.budget)
	if r.Abandoned || q.within(r) {
		return r
	}
	m.curbed, o.Start = true, r.Start
	return cover.Solve(p, o, m.budget)
}

// within reports whether limits allow the nodes of the cover.
func (q *covering) within(r *cover.Result) bool {
	left := slices.Clone(q.Limits)
	for _, n := range r.Nodes {
		for _, u := range q.Candidates[n.Candidate].Uses {
			if left[u.Limit] -= u.Amount * int64(n.Count); left[u.Limit] < 0 {
				return false
			}
		}
	}
	return true
}

// stranded reports whether limits of the tier leave a pod that no lighter pool is for.
func (m *market) stranded(demands []*demand) bool {
	offers := m.offersIn(m.tier)
	return slices.ContainsFunc(demands, func(d *demand) bool {
		return len(d.left) > 0 && m.catalogue.Fits(d.Demand, offers) && !m.catalogue.Fits(d.Demand, fit.Range{From: offers.To, To: len(m.catalogue.Offers)})
	})
}

// coverWithin launches nodes for what is left of the demands, for as many pods as limits allow. It
// reports false when the trial is abandoned.
func (m *market) coverWithin(open []*demand) bool {
	before, was := m.mark(), m.curbed
	m.curbed = false
	defer func() { m.curbed = m.curbed || was }()
	if !m.coverAll(open) {
		return false
	}
	if m.constrained(open) && !m.coverAll(open) { // the improvement may need less of the limits
		return false
	}
	if !m.curbed || m.trial != nil && !m.constrained(open) || m.budget.Late() {
		return true
	}
	m.coverScarce(open, before)
	return m.coverAll(open) // what takes less may leave room for more
}

// coverScarce replaces what was launched since before, where limits are in its way, by nodes that
// take less of them, if that leaves fewer pods or costs less. What nodes take of limits is
// charged for on top of their price, with the least charge that leaves as few pods as
// possible.
func (m *market) coverScarce(open []*demand, before mark) {
	defer m.allot(scarceShare)()
	best, fewest, least := m.mark(), leftOf(open), m.priceOfBins()
	if m.constrained(open) {
		least = 0 // whatever it costs: it leaves other pods to the pools that come next
	}
	try := func(charge float64) (enough bool) {
		m.rollback(before)
		m.launchSparing(open, charge)
		left, cost := leftOf(open), m.priceOfBins()
		enough = left.atMost(fewest)
		if enough && (cost < least || !fewest.atMost(left)) {
			best, fewest, least = m.mark(), left, cost
		}
		return enough
	}
	try(math.Inf(1))
	low, high, charge := 0.0, math.Inf(1), float64(least)
	for tried := 0; tried < scarceSteps && least > 0 && high > scarceNear*low && !m.budget.Spent(); tried++ {
		if try(charge) {
			high = charge
		} else {
			low = charge
		}
		switch {
		case low == 0:
			charge = high / scarceFactor
		case math.IsInf(high, 1):
			charge = low * scarceFactor
		default:
			charge = math.Sqrt(low * high)
		}
	}
	m.rollback(best)
}

const (
	scarceSteps  = 6   // charges that coverScarce tries
	scarceFactor = 4   // between two of them, as long as none is too low, or none is enough
	scarceNear   = 1.2 // no charge is tried between two that are nearer
	scarceShare  = 0.5 // of the budget that is left may be used for them
)

// launchSparing launches nodes for what is left of the demands, with a charge for limits.
func (m *market) launchSparing(open []*demand, charge float64) {
	q := m.covering(open)
	m.launchAll(q, m.cover(q, m.sparing(q, charge), cover.Unlimited()))
}

// sparing returns the problem with what a node takes of limits added to its price, of which
// all that is left costs the charge. An infinite charge alone counts; prices break ties.
func (m *market) sparing(q *covering, charge float64) *cover.Problem {
	p := q.Problem
	p.Candidates = slices.Clone(p.Candidates)
	price := 1.0
	if math.IsInf(charge, 1) {
		charge = 1
		for i := range q.candidates {
			price = max(price, q.candidates[i].price)
		}
		price = 1e-6 / price
	}
	for i := range p.Candidates {
		c := &q.candidates[i]
		p.Candidates[i].Price = price*c.price + charge*m.limits.share(c.pool, c.capacity)
	}
	return &p
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
	few, many := 0, all // all of few can have nodes, not all of many
	for range bisections {
		holdBack(order, pods)
		if m.launchSparing(order, math.Inf(1)); m.constrained(order) {
			many = pods
		} else {
			few = pods
		}
		m.rollback(before)
		if pods = (few + many) / 2; pods == few || m.budget.Spent() {
			break
		}
	}
	rest := holdBack(order, few)
	if !m.coverWithin(order) {
		return false
	}
	for i, d := range order {
		d.left = slices.Concat(d.left, rest[i])
	}
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
