package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
)

// buy launches new nodes of the tier's pools for the demands that have pods left.
func (k *Packer) buy(tier fit.Range) {
	var open []*demand
	for _, d := range k.demands {
		if len(d.left) > 0 {
			open = append(open, d)
		}
	}
	if len(open) == 0 {
		return
	}
	k.spendReservations(open, tier)
	before := k.save()
	if !k.coverAll(open, tier) || !k.constrained(open, tier) {
		return
	}
	k.coverAll(open, tier) // the improvement may need less of the limits
	if k.constrained(open, tier) {
		k.coverScarce(open, tier, before)
		k.coverAll(open, tier) // what takes least may leave room for more
	}
}

// coverAll launches nodes for what is left of the demands at the least price it
// finds. It reports false when the trial is given up.
func (k *Packer) coverAll(open []*demand, tier fit.Range) bool {
	q := k.problem(open, tier)
	if len(q.demands) == 0 {
		return true
	}
	o := cover.Unlimited()
	o.Prove = k.bare == nil && k.granted == nil && !k.stricter()
	if k.bare != nil && k.bare.worth != nil {
		o.Most = k.bare.most
	}
	r := cover.Solve(&q.Problem, o, k.budget)
	if r.Abandoned {
		k.bare.dear, k.bare.late = true, true
		return false
	}
	for i, d := range q.demands {
		if !d.valued {
			d.value, d.valued = r.Values[i], true
		}
	}
	k.launchAll(q, r)
	return true
}

// coverScarce replaces what was launched since before, when limits leave pods
// without a node, by nodes that take least of the limits. It keeps whichever
// plan leaves fewer pods.
func (k *Packer) coverScarce(open []*demand, tier fit.Range, before state) {
	byPrice := k.save()
	k.restore(before)
	q := k.problem(open, tier)
	highest := 1.0
	for _, c := range q.candidates {
		highest = max(highest, c.price)
	}
	for i := range q.Candidates {
		c := &q.candidates[i]
		q.Candidates[i].Price = k.limits.share(c.pool, c.capacity) + 1e-6*c.price/highest // price breaks ties
	}
	k.launchAll(q, cover.Solve(&q.Problem, cover.Unlimited(), k.budget))
	if byPrice.podsLeft <= k.podsLeft() {
		k.restore(byPrice)
	}
}

// constrained reports whether a pod is left that some pool of the tier would
// launch a node for if its limits allowed it.
func (k *Packer) constrained(demands []*demand, tier fit.Range) bool {
	offers := fit.Range{From: k.catalogue.Pools[tier.From].Offers.From, To: k.catalogue.Pools[tier.To-1].Offers.To}
	return slices.ContainsFunc(demands, func(d *demand) bool { return len(d.left) > 0 && k.catalogue.Fits(d.Demand, offers) })
}

// problem is a covering problem, with what its positions stand for.
type problem struct {
	cover.Problem
	candidates []candidate
	demands    []*demand // by item
}

// problem returns the covering problem of the pods left of the demands and the
// offers of the tier that limits still allow.
func (k *Packer) problem(open []*demand, tier fit.Range) *problem {
	return k.problemOf(open, slices.DeleteFunc(k.candidates(tier), k.unaffordable))
}

// problemOf is problem for these candidates.
func (k *Packer) problemOf(open []*demand, candidates []candidate) *problem {
	q := &problem{candidates: candidates}
	resources := k.requestedOf(open, candidates)
	for i := range candidates {
		c := &candidates[i]
		q.Candidates = append(q.Candidates, cover.Candidate{
			Price: c.price, Room: dense(c.free, resources), Serves: c.serves, Pool: c.pool, Uses: dense(c.capacity, k.limits.pools[c.pool].resources),
		})
	}
	at := make([]int, len(k.demands))
	for _, d := range open {
		if len(d.left) > 0 && slices.ContainsFunc(candidates, func(c candidate) bool { return c.canTake(d) }) {
			q.demands = append(q.demands, d)
			at[d.index] = len(q.demands)
			q.Items = append(q.Items, cover.Item{Request: dense(d.Shape.Requests, resources), Count: len(d.left), Class: d.class, Most: d.most})
		}
	}
	for _, g := range k.groups {
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
	for i := range k.limits.pools {
		q.Limits = append(q.Limits, k.limits.pools[i].left)
	}
	q.Epsilon = k.trouble()
	if slices.Contains(k.picky, true) {
		q.Agree = func(c int, items []int) bool { return k.agree(q, c, items) }
	}
	return q
}

// requestedOf returns the positions of the resources that some demand requests
// which a candidate can take.
func (k *Packer) requestedOf(open []*demand, candidates []candidate) []int {
	var out []int
	for _, r := range k.wanted {
		if slices.ContainsFunc(candidates, func(c candidate) bool { return c.free.At(r) > 0 }) &&
			slices.ContainsFunc(open, func(d *demand) bool { return d.Shape.Requests.At(r) > 0 }) {
			out = append(out, r)
		}
	}
	return out
}

// dense returns what r has at the positions.
func dense(r model.Resources, positions []int) []int64 {
	out := make([]int64, len(positions))
	for i, p := range positions {
		out[i] = r.At(p)
	}
	return out
}

// unaffordable reports whether the limits of its pool leave no room for even
// one node of the candidate.
func (k *Packer) unaffordable(c candidate) bool {
	return k.limits.allow(c.pool, c.capacity, 1) == 0
}

// agree reports whether the items suit each other on one node of candidate c.
func (k *Packer) agree(q *problem, c int, items []int) bool {
	pool, offer := q.candidates[c].pool, q.candidates[c].offer
	if !k.picky[pool] {
		return true
	}
	var agreed model.Requirements
	for _, i := range items {
		var ok bool
		if agreed, ok = k.catalogue.Agree(pool, agreed, q.demands[i].At(offer)); !ok {
			return false
		}
	}
	return true
}

// launchAll makes the nodes of the cover part of the plan.
func (k *Packer) launchAll(q *problem, r *cover.Result) {
	for _, n := range r.Nodes {
		k.launchNode(q, n)
	}
}

// launchNode makes a number of equal nodes part of the plan.
func (k *Packer) launchNode(q *problem, n cover.Node) {
	c := &q.candidates[n.Candidate]
	b := bin{offer: c.offer, capacity: c.capacity, count: n.Count}
	for _, t := range n.Take {
		d := q.demands[t.Item]
		all := t.Pods * n.Count
		b.take = append(b.take, portion{demand: d.index, pods: t.Pods, chosen: d.left[:all:all]})
		d.left = d.left[all:]
	}
	k.limits.take(c.pool, c.capacity, n.Count)
	k.bins = append(k.bins, b)
}

// unroll turns bins of several equal nodes into bins of one.
func (k *Packer) unroll() {
	var single []bin
	for _, b := range k.bins {
		for n := range b.count {
			one := bin{offer: b.offer, count: 1, capacity: b.capacity}
			for _, t := range b.take {
				t.chosen = t.chosen[n*t.pods : (n+1)*t.pods]
				one.take = append(one.take, t)
			}
			single = append(single, one)
		}
	}
	k.bins = single
}

// state is what buying changes.
type state struct {
	left     [][]model.Pod
	podsLeft int
	bins     []bin
	limits   *limits
}

func (k *Packer) save() state {
	s := state{podsLeft: k.podsLeft(), bins: slices.Clone(k.bins), limits: k.limits.clone()}
	for _, d := range k.demands {
		s.left = append(s.left, d.left)
	}
	return s
}

func (k *Packer) restore(s state) {
	k.bins, k.limits = slices.Clone(s.bins), s.limits.clone()
	for i, d := range k.demands {
		d.left = s.left[i]
	}
}

func (k *Packer) podsLeft() int {
	n := 0
	for _, d := range k.demands {
		n += len(d.left)
	}
	return n
}
