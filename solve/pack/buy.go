package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// buy plans new nodes in the tier's pools. It solves the covering program of
// what is left, buys the whole part of the solution, and looks again, until
// nothing is left that the tier could take.
func (k *Packer) buy(tier fit.Range) {
	m := k.open(tier)
	for m.restart() {
		m.optimise()
		if k.first == nil {
			k.prove(m)
			k.first, k.proven = m, m.bound()
		}
		k.commitSolution(m)
		if k.outgrown(m) {
			budget := m.budget
			m = k.open(tier)
			m.budget = budget
		}
	}
}

// open returns the market of the tier's offers that limits still allow.
func (k *Packer) open(tier fit.Range) *market {
	m := newMarket(slices.DeleteFunc(k.candidates(tier), k.unaffordable), k.wanted, k.demands)
	m.shares = func(c int, take []portion) bool { return k.agree(m, c, take) }
	m.budget = k.policy.Work
	return m
}

// unaffordable reports whether the limits of its pool leave no room for even
// one node of the candidate.
func (k *Packer) unaffordable(c candidate) bool {
	return k.limits.allow(c.pool, k.capacity(c.offer), 1) == 0
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

// prove alternates exact search and optimisation a few times, so that the
// market's bound is tight, and ends with a search so that it is proven.
func (k *Packer) prove(m *market) {
	for range 3 {
		if !m.prove() {
			return
		}
		m.optimise()
	}
	m.prove()
}

// commitSolution buys the whole nodes of the program's solution, and where all
// amounts are fractions the largest ones. A solution that buys nothing, as
// rounding may leave one, is replaced by a node of the first demand alone, so
// that every round makes progress.
func (k *Packer) commitSolution(m *market) {
	type use struct {
		pattern
		amount float64
	}
	var uses []use
	for column, amount := range m.program.Used {
		uses = append(uses, use{m.patterns[m.columns[column]], amount})
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.amount, a.amount) })
	bought := false
	for i, u := range uses {
		n := int(math.Floor(u.amount + 1e-6))
		if n == 0 && bought && i > len(uses)/8 {
			break
		}
		bought = k.commit(m, u.pattern, max(n, 1)) || bought
	}
	if !bought {
		k.commit(m, m.patterns[m.columns[0]], 1)
	}
}

// commit plans count nodes of the pattern, as far as pods and limits allow.
// When the pods left no longer fill one node it takes those there are.
func (k *Packer) commit(m *market, p pattern, count int) bool {
	b := bin{offer: m.candidates[p.candidate].offer}
	for _, t := range p.take {
		left := len(m.demands[t.demand].left)
		if left == 0 {
			continue
		}
		b.take = append(b.take, portion{demand: slices.Index(k.demands, m.demands[t.demand]), pods: min(t.pods, left)})
		count = max(min(count, left/t.pods), 1)
	}
	pool := m.candidates[p.candidate].pool
	b.count = k.limits.allow(pool, k.capacity(b.offer), count)
	if len(b.take) == 0 || b.count == 0 {
		return false
	}
	k.limits.take(pool, k.capacity(b.offer), b.count)
	for i := range b.take {
		t := &b.take[i]
		d := k.demands[t.demand]
		t.chosen, d.left = d.left[:t.pods*b.count], d.left[t.pods*b.count:]
	}
	k.bins = append(k.bins, b)
	return true
}
