package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// candidate is an offer worth buying, with the classes of demands it may serve.
type candidate struct {
	offer  int
	pool   int
	price  float64 // charged
	free   model.Resources
	serves fit.Bits // over classes
}

// canTake reports whether one pod of d may run on an empty such node.
func (c *candidate) canTake(d *demand) bool {
	return c.serves.Has(d.class) && d.Shape.Requests.Fits(c.free)
}

// candidates returns the offers of the tier's pools that at least one class
// could use, without those that another offer dominates.
func (k *Packer) candidates(tier fit.Range) []candidate {
	var all []candidate
	for i := k.catalogue.Pools[tier.From].Offers.From; i < k.catalogue.Pools[tier.To-1].Offers.To; i++ {
		if !(model.Resources{}).Fits(k.catalogue.Types[k.catalogue.Offers[i].Type].Free) {
			continue // its daemons alone ask for more than it has
		}
		serves := fit.NewBits(len(k.classes))
		for class, offers := range k.classes {
			if offers.Has(i) {
				serves.Set(class)
			}
		}
		if !serves.Empty() {
			o := &k.catalogue.Offers[i]
			row := &k.catalogue.Types[o.Type]
			all = append(all, candidate{i, row.Pool, charged(o.Price), row.Free, serves})
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
// in every pattern: it has the room, serves as many classes, and takes no more
// of a pool's limits.
func (k *Packer) dominates(a, b candidate) bool {
	for _, r := range k.wanted {
		if b.free.At(r) > a.free.At(r) {
			return false
		}
	}
	if !a.serves.Contains(b.serves) {
		return false
	}
	limited := k.limits.pools[a.pool].resources
	if a.pool != b.pool {
		return len(limited) == 0 && !k.picky[a.pool]
	}
	ca, cb := k.capacity(a.offer), k.capacity(b.offer)
	return !slices.ContainsFunc(limited, func(r int) bool { return ca.At(r) > cb.At(r) })
}

func (k *Packer) capacity(offer int) model.Resources {
	return k.catalogue.Types[k.catalogue.Offers[offer].Type].Capacity
}

// trouble is what a node is charged on top of its price, next to nothing: of
// two plans that cost the same, the one with fewer nodes is better.
const trouble model.Price = 1

func charged(price model.Price) float64 { return float64(price + trouble) }
