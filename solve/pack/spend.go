// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
)

// prepaidOffers returns the reserved offers of the tier that can be used, as
// candidates, small ones first.
func (m *market) prepaidOffers() []candidate {
	defer func(was bool) { m.partial = was }(m.partial) // what is missing here costs the proof nothing
	var out []candidate
	for _, id := range m.catalogue.Reservations() {
		if m.prepaid[id] <= 0 {
			continue
		}
		for pool := m.tier.From; pool < m.tier.To; pool++ {
			p := &m.catalogue.Pools[pool]
			offers := p.Usable.And(m.catalogue.Reserved(id))
			if m.strict(pool) {
				out = m.varied(pool, offers.Bits(), out)
				continue
			}
			for i := range offers.All() {
				out = m.prepaidOffer(i, out)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return slices.Compare(a.room, b.room) })
	return slices.DeleteFunc(out, m.unaffordable)
}

// prepaidOffer adds a reserved offer as a candidate.
func (m *market) prepaidOffer(offer int, out []candidate) []candidate {
	o := &m.catalogue.Offers[offer]
	row := &m.catalogue.Types[o.Type]
	serves := fit.NewBits(len(m.classes))
	for class, offers := range m.classes {
		if offers.Has(offer) {
			serves.Set(class)
		}
	}
	if serves.Empty() || !(model.Resources{}).Fits(row.Free) {
		return out
	}
	return append(out, candidate{
		offer: offer, pool: row.Pool, price: m.charged(o.Price), free: row.Free, room: m.roomFor(row.Free), serves: serves, capacity: row.Capacity,
	})
}

// spendReservations plans nodes that take from reservations, always the one
// whose pods are worth most above its price. A pod is worth what its share of
// launched nodes would cost; one that could not be given a node in the tier is
// worth more than any other.
func (m *market) spendReservations(demands []*demand) {
	for {
		candidates := m.prepaidOffers()
		if len(candidates) == 0 {
			return
		}
		q := m.coveringBy(demands, candidates)
		if len(q.demands) == 0 {
			return
		}
		takes, worths := cover.Fullest(&q.Problem, m.appraise(q, demands), m.budget)
		best, gain := -1, 0.0
		for c := range takes {
			if g := worths[c] - candidates[c].price; len(takes[c]) > 0 && g > gain*(1+1e-9) {
				best, gain = c, g
			}
		}
		if best < 0 {
			return
		}
		most := m.prepaid[m.reservation(candidates[best].offer)]
		m.launchNode(q, m.alikeNodes(q, best, takes[best], int(min(most, 1<<30))))
	}
}

// regroup replaces what was launched since before by nodes that cost less for the same pods, if it
// finds any: what fits into reserved nodes shows when all nodes are known.
func (m *market) regroup(open []*demand, before mark) {
	after, cost, launched := m.mark(), m.cost(), m.bins[len(before.bins):]
	if len(launched) == 0 || m.one != nil || m.demanding(m.tier) {
		return
	}
	m.rollback(before)
	candidates := slices.Concat(m.prepaidOffers(), slices.DeleteFunc(slices.Clone(m.sold), m.unaffordable))
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.price, b.price) })
	q := m.coveringBy(open, candidates)
	if nodes, known := q.nodesOf(launched); known {
		for _, n := range cover.Improve(&q.Problem, nodes, m.appraise(q, open), m.budget) {
			m.launchNode(q, n)
		}
	}
	if m.cost() >= cost*(1-1e-9) || len(m.bins) == len(before.bins) {
		m.rollback(after)
	}
}

// nodesOf returns the bins as nodes of the cover, and reports whether it knows all of what they are
// and take.
func (q *covering) nodesOf(bins []bin) ([]cover.Node, bool) {
	var out []cover.Node
	for _, b := range bins {
		n := cover.Node{Candidate: slices.IndexFunc(q.candidates, func(c candidate) bool { return c.offer == b.offer }), Count: b.count}
		for _, t := range b.take {
			item := slices.IndexFunc(q.demands, func(d *demand) bool { return d.index == t.demand })
			if n.Take = append(n.Take, cover.Portion{Item: item, Pods: t.pods}); item < 0 {
				return nil, false
			}
		}
		if out = append(out, n); n.Candidate < 0 {
			return nil, false
		}
	}
	return out, true
}

// alikeNodes returns as many equal nodes as pods and limits allow, at most count.
func (m *market) alikeNodes(q *covering, c int, take []cover.Portion, count int) cover.Node {
	for _, t := range take {
		count = min(count, q.Items[t.Item].Count/t.Pods)
	}
	return cover.Node{Candidate: c, Count: m.limits.allow(q.candidates[c].pool, q.candidates[c].capacity, max(count, 1)), Take: take}
}

// appraise returns what a pod of each item costs if nodes are launched for all
// of the demands in the tier. Pods for which the tier launches nothing but
// reserved nodes are worth more than all others together and more than any
// reserved node costs, and large ones more than small ones.
func (m *market) appraise(q *covering, demands []*demand) []float64 {
	bought := m.covering(demands)
	worth, all := map[*demand]float64{}, 1.0
	for _, c := range q.candidates {
		all = max(all, 1+c.price)
	}
	values, _ := cover.Values(&bought.Problem, cover.Unlimited(), m.budget)
	for i, v := range values {
		d := bought.demands[i]
		worth[d] = v
		all += v * float64(len(d.left))
	}
	out := make([]float64, len(q.demands))
	for i, d := range q.demands {
		size := 1.0
		for r, v := range q.Items[i].Request {
			most := int64(1)
			for c := range q.Candidates {
				most = max(most, q.Candidates[c].Room[r])
			}
			size += float64(v) / float64(most)
		}
		out[i] = all * size
		if w, known := worth[d]; known {
			out[i] = w + alongside*all*size
		}
	}
	return out
}

// alongside is the least worth of a pod, as a part of that of all: one that could share
// another's node for nothing still is to come along when that node is not launched.
const alongside = 1e-4
