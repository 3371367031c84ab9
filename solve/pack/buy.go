package pack

import (
	"math"

	"karpenter/model"
	"karpenter/solve/fit"
)

// buy plans new nodes in the tier's pools until nothing is left that they
// could take: always the pattern that brings the most value for its price.
func (k *Packer) buy(tier fit.Range) {
	candidates := k.candidates(tier)
	k.appraise(candidates)
	for {
		best, score := bin{}, 0.0
		for _, c := range candidates {
			if k.limits.allow(c.pool, k.capacity(c.offer), 1) == 0 {
				continue
			}
			if take, value := k.fill(c); value > score*c.price {
				best, score = bin{offer: c.offer, take: take}, value/c.price
			}
		}
		if len(best.take) == 0 {
			return
		}
		k.commit(best)
	}
}

// appraise sets the value of each demand that a candidate can serve: the
// least price of the share of a node that one pod takes up.
func (k *Packer) appraise(candidates []candidate) {
	for j, d := range k.demands {
		d.value = math.Inf(1)
		for _, c := range candidates {
			if c.serves.Has(j) {
				d.value = min(d.value, c.price*share(d.Shape.Requests, c.free))
			}
		}
		d.value = max(d.value, 1)
	}
}

// share is the largest fraction of any resource in free that r takes.
func share(r, free model.Resources) float64 {
	most := 0.0
	for i, v := range r {
		if v > 0 {
			most = max(most, float64(v)/float64(free.At(i)))
		}
	}
	return most
}

// fill packs one node of the candidate greedily and returns what it takes and
// the value of that. The next pods are always those with the highest value
// for the share of the remaining room they take; ties go to the larger shape.
func (k *Packer) fill(c candidate) ([]portion, float64) {
	var take []portion
	var agreed model.Requirements
	value, free := 0.0, c.free
	taken := map[int]int{}
	for {
		best, density := -1, 0.0
		for j := range c.serves.All() {
			d := k.demands[j]
			if taken[j] == len(d.left) || !d.Shape.Requests.Fits(free) {
				continue
			}
			if v := d.value / share(d.Shape.Requests, free); v > density*(1+1e-9) {
				if _, ok := k.catalogue.Agree(c.pool, agreed, d.At(c.offer)); ok {
					best, density = j, v
				}
			}
		}
		if best < 0 {
			break
		}
		d := k.demands[best]
		n := max(fit.Room(free, d.Shape.Requests, len(d.left)-taken[best])/2, 1)
		agreed, _ = k.catalogue.Agree(c.pool, agreed, d.At(c.offer))
		free = free.Minus(d.Shape.Requests.Times(int64(n)))
		value += d.value * float64(n)
		taken[best] += n
	}
	for j := range c.serves.All() {
		if taken[j] > 0 {
			take = append(take, portion{demand: j, pods: taken[j]})
		}
	}
	return take, value
}

// commit plans as many nodes of the pattern as pods and limits allow.
func (k *Packer) commit(b bin) {
	pool := k.catalogue.Types[k.catalogue.Offers[b.offer].Type].Pool
	b.count = math.MaxInt
	for _, p := range b.take {
		b.count = min(b.count, len(k.demands[p.demand].left)/p.pods)
	}
	b.count = k.limits.allow(pool, k.capacity(b.offer), b.count)
	k.limits.take(pool, k.capacity(b.offer), b.count)
	for i := range b.take {
		p := &b.take[i]
		d := k.demands[p.demand]
		p.chosen, d.left = d.left[:p.pods*b.count], d.left[p.pods*b.count:]
	}
	k.bins = append(k.bins, b)
}
