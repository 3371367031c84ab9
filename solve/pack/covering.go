// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
)

// covering is a covering problem, with what its positions stand for.
type covering struct {
	cover.Problem
	candidates []candidate
	demands    []*demand     // by item
	agreed     map[pair]bool // remembered
	latest     agreement     // remembered
}

// agreement is what items demand together of a node of a candidate.
type agreement struct {
	candidate int
	items     []int
	demands   model.Requirements
}

// pair is two items on one node, with the terms that their pods run under there.
type pair struct {
	pool int
	item [2]int
	term [2]int
}

// covering returns the covering problem of the pods left of the demands and the
// offers of the tier that limits still allow.
func (m *market) covering(open []*demand) *covering {
	if m.sold == nil || m.demanding(m.tier) { // with minValues, limits say which there are
		m.sold = m.candidates(open)
	}
	return m.coveringBy(open, slices.DeleteFunc(slices.Clone(m.sold), m.unaffordable))
}

// coveringBy is covering with these candidates.
func (m *market) coveringBy(open []*demand, candidates []candidate) *covering {
	q := &covering{candidates: candidates, agreed: map[pair]bool{}}
	resources := m.requestedOf(open, candidates)
	uses := q.limit(m.draft)
	for i := range candidates {
		c := &candidates[i]
		q.Candidates = append(q.Candidates, cover.Candidate{
			Price: c.price, Room: dense(c.free, resources), Serves: c.serves, Pool: c.pool, Uses: uses(c),
		})
	}
	at := make([]int, len(m.demands))
	for _, d := range open {
		if len(d.left) > 0 && slices.ContainsFunc(candidates, func(c candidate) bool { return c.canTake(d) }) {
			q.demands = append(q.demands, d)
			at[d.index] = len(q.demands)
			q.Items = append(q.Items, cover.Item{Request: dense(d.Shape.Requests, resources), Count: len(d.left), Class: d.class, Most: d.most})
		}
	}
	for _, g := range m.groups {
		q.Groups = append(q.Groups, g.limit)
		for i := range g.members.All() {
			if at[i] > 0 {
				it := &q.Items[at[i]-1]
				it.Groups = append(it.Groups, len(q.Groups)-1)
			}
		}
	}
	for i, d := range q.demands {
		if d.apart == nil {
			continue
		}
		apart := fit.NewBits(len(q.Items))
		for j := range d.apart.All() {
			if at[j] > 0 {
				apart.Set(at[j] - 1)
			}
		}
		q.Items[i].Apart = apart
	}
	q.Epsilon = m.trouble()
	if slices.Contains(m.picky, true) {
		q.Agree = func(c int, items []int) bool { return m.agree(q, c, items) }
	}
	if slices.ContainsFunc(q.demands, func(d *demand) bool { return m.claiming([]portion{{demand: d.index, pods: 1}}) }) {
		q.Supplied = func(c int, take []cover.Portion, item, pods int) int { return m.suppliedBy(q, c, take, item, pods) }
	}
	return q
}

// limit adds what limits of pools and reservations leave. It returns what tells how much of
// them a node of a candidate uses.
func (q *covering) limit(x *draft) func(*candidate) []cover.Use {
	first := make([]int, len(x.limits.pools)) // positions of the first limit of each
	for i := range x.limits.pools {
		first[i] = len(q.Limits)
		q.Limits = append(q.Limits, x.limits.pools[i].left...)
	}
	given := map[string]int{} // positions of reservations
	for _, id := range x.catalogue.Reservations() {
		given[id] = len(q.Limits)
		q.Limits = append(q.Limits, x.prepaid[id])
	}
	return func(c *candidate) []cover.Use {
		var out []cover.Use
		for i, r := range x.limits.pools[c.pool].resources {
			out = append(out, cover.Use{Limit: first[c.pool] + i, Amount: c.capacity.At(r)})
		}
		if id := x.reservation(c.offer); id != "" {
			out = append(out, cover.Use{Limit: given[id], Amount: 1})
		}
		return out
	}
}

// suppliedBy returns for how many of so many more pods of an item a node of candidate c
// that takes these has devices.
func (m *market) suppliedBy(q *covering, c int, take []cover.Portion, item, pods int) int {
	d := q.demands[item]
	if !m.claiming([]portion{{demand: d.index, pods: 1}}) {
		return pods
	}
	var all []portion
	for _, t := range take {
		if t.Item != item {
			all = append(all, portion{demand: q.demands[t.Item].index, pods: t.Pods})
		} else {
			pods += t.Pods
		}
	}
	there := 0
	if i := slices.IndexFunc(take, func(t cover.Portion) bool { return t.Item == item }); i >= 0 {
		there = take[i].Pods
	}
	row := &m.catalogue.Types[m.catalogue.Offers[q.candidates[c].offer].Type]
	for ; pods > there; pods-- {
		if m.supplied(row, append(all, portion{demand: d.index, pods: pods})) {
			break
		}
	}
	return pods - there
}

// requestedOf returns the positions of the resources that some demand requests
// which a candidate can take.
func (m *market) requestedOf(open []*demand, candidates []candidate) []int {
	var out []int
	for _, r := range m.wanted {
		if slices.ContainsFunc(candidates, func(c candidate) bool { return c.free.At(r) > 0 }) &&
			slices.ContainsFunc(open, func(d *demand) bool { return d.Shape.Requests.At(r) > 0 }) {
			out = append(out, r)
		}
	}
	return out
}

// stepsToAgree is what it takes to see whether an item suits others on a node.
const stepsToAgree = 256

// agree reports whether the items suit each other on one node of candidate c. The last
// of them is the one that is new there, most often.
func (m *market) agree(q *covering, c int, items []int) bool {
	if !m.picky[q.candidates[c].pool] || len(items) == 0 {
		return true
	}
	last := items[len(items)-1]
	for _, i := range items {
		if !m.agreeOnce(q, c, i, last) {
			return false
		}
	}
	return len(items) <= 2 || m.allAgree(q, c, items)
}

// agreeOnce is allAgree for two items, or one and itself, of which it remembers the answer.
func (m *market) agreeOnce(q *covering, c int, i, j int) bool {
	offer := q.candidates[c].offer
	p := pair{q.candidates[c].pool, [2]int{i, j}, [2]int{q.demands[i].Under(offer), q.demands[j].Under(offer)}}
	ok, known := q.agreed[p]
	if !known {
		ok = m.allAgree(q, c, []int{i, j})
		q.agreed[p] = ok
	}
	return ok
}

// allAgree reports whether the items suit each other on one node of candidate c.
func (m *market) allAgree(q *covering, c int, items []int) bool {
	pool, offer := q.candidates[c].pool, q.candidates[c].offer
	var agreed model.Requirements
	begun := 0
	if l := &q.latest; l.candidate == c && len(items) > len(l.items) && slices.Equal(l.items, items[:len(l.items)]) {
		agreed, begun = l.demands, len(l.items)
	}
	m.budget.Spend(stepsToAgree * (len(items) - begun))
	for _, i := range items[begun:] {
		var ok bool
		if agreed, ok = m.catalogue.Agree(pool, agreed, q.demands[i].At(offer)); !ok {
			return false
		}
	}
	q.latest = agreement{c, append(q.latest.items[:0], items...), agreed}
	return true
}

// dense returns what r has at the positions.
func dense(r model.Resources, positions []int) []int64 {
	out := make([]int64, len(positions))
	for i, p := range positions {
		out[i] = r.At(p)
	}
	return out
}

// launchAll makes the nodes of the cover part of the plan.
func (m *market) launchAll(q *covering, r *cover.Result) {
	for _, n := range r.Nodes {
		m.launchNode(q, n)
	}
}

// launchNode makes a number of equal nodes part of the plan.
func (m *market) launchNode(q *covering, n cover.Node) {
	c := &q.candidates[n.Candidate]
	b := bin{offer: c.offer, capacity: c.capacity, count: n.Count}
	for _, t := range n.Take {
		d := q.demands[t.Item]
		all := t.Pods * n.Count
		b.take = append(b.take, portion{demand: d.index, pods: t.Pods, chosen: d.left[:all:all]})
		d.left = d.left[all:]
	}
	m.limits.take(c.pool, c.capacity, n.Count)
	if id := m.reservation(c.offer); id != "" {
		m.prepaid[id] -= int64(n.Count)
	}
	m.bins = append(m.bins, b)
}
