package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// candidate is an offer worth buying, with the demands it may serve.
type candidate struct {
	offer  int
	pool   int
	price  float64
	free   model.Resources
	serves fit.Bits // over Packer.demands
}

// candidates returns the offers of the tier's pools that at least one demand
// could use, without those that another offer of the same pool dominates.
func (k *Packer) candidates(tier fit.Range) []candidate {
	var out []candidate
	for i := tier.From; i < tier.To; i++ {
		out = append(out, k.poolCandidates(i)...)
	}
	return out
}

func (k *Packer) poolCandidates(pool int) []candidate {
	p := &k.catalogue.Pools[pool]
	var all []candidate
	for i := p.Offers.From; i < p.Offers.To; i++ {
		if !p.Usable.Has(i) {
			continue
		}
		serves := fit.NewBits(len(k.demands))
		for j, d := range k.demands {
			if len(d.left) > 0 && d.Offers.Has(i) {
				serves.Set(j)
			}
		}
		if !serves.Empty() {
			o := &k.catalogue.Offers[i]
			all = append(all, candidate{i, pool, float64(o.Price), k.catalogue.Types[o.Type].Free, serves})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.price, b.price) })
	var kept []candidate
	for _, c := range all {
		if !slices.ContainsFunc(kept, func(o candidate) bool { return k.dominates(o, c) }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// dominates reports whether a, which is no dearer than b, can stand in for b
// in every pattern without taking more of the pool's limits.
func (k *Packer) dominates(a, b candidate) bool {
	if !b.free.Max(nil).Fits(a.free) || !a.serves.Contains(b.serves) {
		return false
	}
	ca, cb := k.capacity(a.offer), k.capacity(b.offer)
	for _, r := range k.limits.pools[a.pool].resources {
		if ca.At(r) > cb.At(r) {
			return false
		}
	}
	return true
}

func (k *Packer) capacity(offer int) model.Resources {
	return k.catalogue.Types[k.catalogue.Offers[offer].Type].Capacity
}
