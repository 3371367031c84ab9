package pack

import (
	"math/rand/v2"
	"slices"

	"karpenter/model"
)

// Bounds of the search for improvements.
const (
	improveBins  = 64  // larger plans are close to their bound already
	improveTries = 150 // without success, before giving up
	improveWidth = 4   // most nodes torn down at once
)

// improve tears down a few of the nodes bought since from and buys for their
// pods anew, with the worth of pods disturbed a little, and keeps what is
// cheaper. Rounding hurts small plans most, and this is where it is mended.
func (k *Packer) improve(m *market, from int, worth []float64) {
	nodes := 0
	for _, b := range k.bins[from:] {
		nodes += b.count
	}
	if nodes > improveBins || nodes < 1 {
		return
	}
	k.unroll(from)
	r := rebuilder{Packer: k, market: m, from: from, rng: rand.New(rand.NewPCG(1, 2))} // a fixed seed: plans must be repeatable
	r.shortlist(worth)
	for tries := 0; tries < improveTries && m.budget > 0; tries++ {
		torn := r.rng.Perm(len(k.bins) - from)
		torn = torn[:min(len(torn), 1+r.rng.IntN(improveWidth))]
		r.disturb(worth)
		if r.rebuild(torn) {
			tries = 0
		}
	}
}

// rebuilder tears nodes down and buys anew.
type rebuilder struct {
	*Packer
	market *market
	from   int // bins before this one are not touched
	rng    *rand.Rand

	candidates []int     // worth a look
	favour     []float64 // how much dearer each of them is made to look
}

// How wide the shortlist is.
const (
	shortlistRatio = 0.85 // of worth to price, when filled from all pods
	shortlistCheap = 24   // and this many of the cheapest, for what is left over
)

// shortlist picks the candidates that can be part of a good plan: those that
// come close to their price, and small ones.
func (r *rebuilder) shortlist(worth []float64) {
	m := r.market
	for row, d := range m.demands {
		m.count[row] = len(d.Pods)
	}
	m.values = worth
	cheap := 0
	for c := range m.candidates { // cheapest first
		_, w := m.fill(c)
		if w > 0 {
			cheap++
		}
		if w >= shortlistRatio*m.candidates[c].price || (w > 0 && cheap <= shortlistCheap) {
			r.candidates = append(r.candidates, c)
		}
	}
	r.favour = make([]float64, len(r.candidates))
}

// disturb draws how the next purchase looks at pods and candidates.
func (r *rebuilder) disturb(worth []float64) {
	r.market.values = make([]float64, len(worth))
	for i, v := range worth {
		r.market.values[i] = v * (0.7 + 0.6*r.rng.Float64())
	}
	for i := range r.favour {
		r.favour[i] = 1 + 0.4*r.rng.Float64()
	}
}

// unroll turns bins of several equal nodes into bins of one.
func (k *Packer) unroll(from int) {
	var single []bin
	for _, b := range k.bins[from:] {
		for n := range b.count {
			one := bin{offer: b.offer, count: 1, capacity: b.capacity}
			for _, t := range b.take {
				t.chosen = t.chosen[n*t.pods : (n+1)*t.pods]
				one.take = append(one.take, t)
			}
			single = append(single, one)
		}
	}
	k.bins = append(k.bins[:from:from], single...)
}

// rebuild replaces the torn bins by cheaper ones for the same pods, if it
// finds any.
func (r *rebuilder) rebuild(torn []int) bool {
	k, m, from := r.Packer, r.market, r.from
	pods := make([][]model.Pod, len(m.demands))
	spent := 0.0
	for row, d := range m.demands {
		m.count[row] = 0
		for _, i := range torn {
			for _, t := range k.bins[from+i].take {
				if k.demands[t.demand] == d {
					pods[row] = append(pods[row], t.chosen...)
				}
			}
		}
		m.count[row] = len(pods[row])
	}
	for _, i := range torn {
		spent += k.priceOf(k.bins[from+i].offer)
	}
	patterns, ok := r.cover(spent)
	if !ok || !k.swapLimits(m, from, torn, patterns) {
		return false
	}
	var kept []bin
	for i, b := range k.bins[from:] {
		if !slices.Contains(torn, i) {
			kept = append(kept, b)
		}
	}
	for _, p := range patterns {
		b := bin{offer: m.candidates[p.candidate].offer, count: 1, capacity: m.candidates[p.candidate].capacity}
		for _, t := range p.take {
			b.take = append(b.take, portion{demand: m.demands[t.demand].index, pods: t.pods, chosen: pods[t.demand][:t.pods]})
			pods[t.demand] = pods[t.demand][t.pods:]
		}
		kept = append(kept, b)
	}
	k.bins = append(k.bins[:from:from], kept...)
	return true
}

func (k *Packer) priceOf(offer int) float64 { return k.charged(k.catalogue.Offers[offer].Price) }

// cover buys for all pods the market counts, best worth for price first, and
// reports whether that costs less than limit.
func (r *rebuilder) cover(limit float64) ([]pattern, bool) {
	m := r.market
	var out []pattern
	spent := 0.0
	for slices.ContainsFunc(m.count, func(n int) bool { return n > 0 }) {
		var best pattern
		score := 0.0
		for i, c := range r.candidates {
			price := m.candidates[c].price
			if spent+price >= limit {
				continue
			}
			if take, worth := m.fill(c); worth > score*price*r.favour[i]*(1+1e-9) {
				best, score = pattern{c, take}, worth/price/r.favour[i]
			}
		}
		m.budget -= len(r.candidates)
		if score == 0 {
			return nil, false
		}
		if spent += m.candidates[best.candidate].price; spent >= limit*(1-1e-9) {
			return nil, false
		}
		for _, t := range best.take {
			m.count[t.demand] -= t.pods
		}
		out = append(out, best)
	}
	return out, true
}

// swapLimits gives back what the torn bins reserved and reserves what the
// patterns need, or leaves all as it was and reports false.
func (k *Packer) swapLimits(m *market, from int, torn []int, patterns []pattern) bool {
	before := k.limits.clone()
	for _, i := range torn {
		b := &k.bins[from+i]
		k.limits.take(k.poolOf(b.offer), b.capacity, -1)
	}
	for _, p := range patterns {
		c := m.candidates[p.candidate]
		if k.limits.allow(c.pool, c.capacity, 1) == 0 {
			k.limits = before
			return false
		}
		k.limits.take(c.pool, c.capacity, 1)
	}
	return true
}
