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
	for {
		m := k.open(tier, func(d *demand) int { return len(d.left) })
		if len(m.demands) == 0 {
			return
		}
		k.work = m.optimise(k.work)
		if k.first == nil {
			k.first = m
			k.proveBest(m)
		}
		k.commitSolution(m)
	}
}

// open returns the market of the tier's offers that limits still allow.
func (k *Packer) open(tier fit.Range, amount func(*demand) int) *market {
	affordable := slices.DeleteFunc(k.candidates(tier, k.classes), func(c candidate) bool {
		return k.limits.allow(c.pool, k.capacity(c.offer), 1) == 0
	})
	m := newMarket(affordable, k.wanted, k.demands, amount)
	m.shares = func(c int, take []portion) bool { return k.agree(m, c, take) }
	return m
}

// agree reports whether the demands of all portions suit each other on one
// node of candidate c.
func (k *Packer) agree(m *market, c int, take []portion) bool {
	var agreed model.Requirements
	for _, t := range take {
		var ok bool
		if agreed, ok = k.catalogue.Agree(m.candidates[c].pool, agreed, m.demands[t.demand].At(m.candidates[c].offer)); !ok {
			return false
		}
	}
	return true
}

// proveBest alternates exact search and optimisation a few times, so that the
// market's bound is tight, and ends with a search so that it is proven.
func (k *Packer) proveBest(m *market) {
	for range 3 {
		if !m.prove() {
			return
		}
		k.work = m.optimise(k.work)
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
		uses = append(uses, use{m.patterns[column], amount})
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
		k.commit(m, m.patterns[0], 1)
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
