package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// buy plans new nodes in the tier's pools for the demands that have pods left.
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
	for _, demands := range k.markets(open, tier) {
		k.buyFor(demands, tier)
	}
}

// manyTied is how many demands make one program that is slow to solve.
const manyTied = 96

// markets divides many demands into those that have no offer in common, as far
// as rules between pods tie them to different domains and no limit of the tier
// is shared: programs are solved the faster the smaller they are.
func (k *Packer) markets(open []*demand, tier fit.Range) [][]*demand {
	tied := slices.ContainsFunc(open, func(d *demand) bool { return d.whole != nil })
	limited := slices.ContainsFunc(k.catalogue.Pools[tier.From:tier.To], func(p fit.Pool) bool { return len(p.Limits) > 0 })
	if !tied || limited || len(open) <= manyTied {
		return [][]*demand{open}
	}
	var out [][]*demand
	var offers []fit.Bits
	for _, d := range open {
		members, all := []*demand{d}, d.Offers
		for i := 0; i < len(out); i++ {
			if !offers[i].And(all).Empty() {
				members, all = append(out[i], members...), offers[i].Or(all)
				out, offers = slices.Delete(out, i, i+1), slices.Delete(offers, i, i+1)
				i = -1
			}
		}
		out, offers = append(out, members), append(offers, all)
	}
	return out
}

// buyFor spends reservations on the demands, then buys nodes for what is left
// of them for the least price it finds. When limits then leave pods without a
// node, it also tries to buy what takes least of the limits, and keeps the plan
// that leaves fewer pods.
func (k *Packer) buyFor(demands []*demand, tier fit.Range) {
	k.spendReservations(demands, tier)
	before := k.save()
	asked := func(c candidate) float64 { return c.price }
	m, worth := k.fillTier(demands, tier, true, asked)
	if len(m.demands) == 0 || k.dear() {
		return
	}
	if !m.mixed() {
		k.improve(m, len(before.bins), worth)
	}
	if !k.constrained(demands, tier) {
		return
	}
	k.fillTier(demands, tier, false, asked) // the improvement may need less of the limits
	byPrice := k.save()
	k.restore(before)
	left := k.limits.clone()
	scarce := func(c candidate) float64 { return left.share(c.pool, c.capacity) + c.price/1e15 } // price breaks ties
	k.fillTier(demands, tier, false, scarce)
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

// fillTier solves the covering program of what is left, buys the whole part of
// the solution, and looks again, until nothing is left that the tier could
// take. Price is what a candidate is charged. With provable the first solution
// proves a bound, for which these must be the real prices. It returns the
// market as it was first, and what pods were worth there.
func (k *Packer) fillTier(demands []*demand, tier fit.Range, provable bool, price func(candidate) float64) (first *market, worth []float64) {
	first = k.open(demands, tier, price)
	m := first
	rounds := math.MaxInt
	for m.restart() {
		m.optimise(rounds)
		rounds = m.few()
		if k.dearHere(m) {
			return first, nil
		}
		if m == first && worth == nil {
			if provable {
				k.proveTier(m, tier)
			}
			worth = slices.Clone(m.values)
		}
		k.commitSolution(m)
		m.forget()
		if k.outgrown(m) || m.coarse() {
			budget := m.budget
			m = k.open(demands, tier, price)
			m.budget = budget
		}
	}
	return first, worth
}

// proveTier remembers what the market proves, and reports whether it proves
// anything: it does not where plans are feasible that no pattern of it stands
// for.
func (k *Packer) proveTier(m *market, tier fit.Range) bool {
	switch {
	case k.bare != nil:
		return false
	case k.partial || k.policy.RelaxMinValues && k.demanding(tier):
		return false
	case m.mixed():
		k.proveBlocks(m, tier)
	default:
		m.settle(3 + settleWork/len(m.demands))
		k.prove(m, tier)
	}
	return true
}

// open returns the market of the tier's offers that limits still allow.
func (k *Packer) open(demands []*demand, tier fit.Range, price func(candidate) float64) *market {
	candidates := slices.DeleteFunc(k.candidates(tier), k.unaffordable)
	for i := range candidates {
		candidates[i].price = price(candidates[i])
	}
	var open []*demand
	for _, d := range demands {
		if len(d.left) > 0 && slices.ContainsFunc(candidates, func(c candidate) bool { return c.canTake(d) }) {
			open = append(open, d)
		}
	}
	m := k.newMarket(candidates, k.blocks(open, false))
	m.opened = len(open)
	m.shares = func(c int, take []portion) bool { return k.agree(m, c, take) }
	m.budget = k.policy.Work
	return m
}

// unaffordable reports whether the limits of its pool leave no room for even
// one node of the candidate.
func (k *Packer) unaffordable(c candidate) bool {
	return k.limits.allow(c.pool, c.capacity, 1) == 0
}

// outgrown reports whether the market offers something that limits no longer
// allow.
func (k *Packer) outgrown(m *market) bool { return slices.ContainsFunc(m.candidates, k.unaffordable) }

// agree reports whether the demands of all portions suit each other on one
// node of candidate c.
func (k *Packer) agree(m *market, c int, take []portion) bool {
	pool, offer := m.candidates[c].pool, m.candidates[c].offer
	if !k.picky[pool] {
		return true
	}
	var agreed model.Requirements
	for _, t := range take {
		var ok bool
		if agreed, ok = k.catalogue.Agree(pool, agreed, m.demands[t.demand].At(offer)); !ok {
			return false
		}
	}
	return true
}

// commitSolution buys the whole nodes of the program's solution, and of the
// fractions that are left the largest ones, as far as pods are left to fill
// them. A solution that buys nothing, as rounding may leave one, is replaced by
// a node of the first demand alone, so that every round makes progress.
func (k *Packer) commitSolution(m *market) {
	type use struct {
		pattern
		amount, rest float64
	}
	var uses []use
	for column, amount := range m.program.Used {
		uses = append(uses, use{m.patterns[m.columns[column]], amount, amount})
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.amount, a.amount) })
	bought := false
	for i := range uses {
		if n := math.Floor(uses[i].amount + 1e-6); n > 0 {
			bought = k.commit(m, uses[i].pattern, int(n)) || bought
			uses[i].rest -= n
		}
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.rest, a.rest) })
	for _, u := range uses[:(len(uses)+roundUp-1)/roundUp] {
		if bought && (u.rest < 0.5 || !m.fills(u.pattern)) {
			continue
		}
		bought = k.commit(m, u.pattern, 1) || bought
	}
	if !bought && !k.commit(m, m.patterns[m.columns[0]], 1) {
		k.commitFirst(m)
	}
}

// roundUp is of how many fractions the largest is rounded up in one round.
const roundUp = 32

// commit plans count nodes of the pattern, as far as pods and limits allow.
// When the pods left no longer fill one node it takes those there are.
func (k *Packer) commit(m *market, p pattern, count int) bool {
	if slices.ContainsFunc(p.take, func(t portion) bool { return m.demands[t.demand].block() }) {
		bought := false
		for range count {
			bought = k.commitMixed(m, p) || bought
		}
		return bought
	}
	c := &m.candidates[p.candidate]
	b := bin{offer: c.offer, capacity: c.capacity}
	for _, t := range p.take {
		left := len(m.demands[t.demand].left)
		if left == 0 {
			continue
		}
		b.take = append(b.take, portion{demand: m.demands[t.demand].index, pods: min(t.pods, left)})
		count = max(min(count, left/t.pods), 1)
	}
	b.count = k.limits.allow(c.pool, c.capacity, count)
	if len(b.take) == 0 || b.count == 0 {
		return false
	}
	k.limits.take(c.pool, c.capacity, b.count)
	for i := range b.take {
		t := &b.take[i]
		d := k.demands[t.demand]
		n := t.pods * b.count
		t.chosen, d.left = d.left[:n:n], d.left[n:]
	}
	k.bins = append(k.bins, b)
	return true
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
