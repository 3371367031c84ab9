package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// candidate is an offer worth buying, with the classes of demands it may serve
// and the room that every type has which its launches must list.
type candidate struct {
	offer  int
	pool   int
	price  float64 // charged
	free   model.Resources
	room   []int64  // of free, what anybody requests
	serves fit.Bits // over classes

	capacity model.Resources // what a node of it is reserved in its pool's limits
}

// canTake reports whether one pod of d may run on an empty such node.
func (c *candidate) canTake(d *demand) bool {
	return c.serves.Has(d.class) && d.Shape.Requests.Fits(c.free)
}

// candidates returns the offers of the tier's pools that at least one class
// could use, without those that another offer dominates, cheapest first.
func (k *Packer) candidates(tier fit.Range) []candidate {
	used := fit.NewBits(len(k.catalogue.Offers))
	for _, offers := range k.classes {
		used.Add(offers)
	}
	var all []candidate
	for pool := tier.From; pool < tier.To; pool++ {
		p := &k.catalogue.Pools[pool]
		if k.strict(pool) {
			all = k.varied(pool, p.Usable.Less(k.reserved), all)
			continue
		}
		for i := p.Types.From; i < p.Types.To; i++ {
			row := &k.catalogue.Types[i]
			if used.Any(row.Offers) && (model.Resources{}).Fits(row.Free) { // else its daemons alone ask for more than it has
				all = k.ofType(row, all)
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].price, all[b].price), cmp.Compare(all[a].offer, all[b].offer))
	})
	var kept []*candidate
	for _, i := range order {
		if !slices.ContainsFunc(kept, func(o *candidate) bool { return k.dominates(o, &all[i]) }) {
			kept = append(kept, &all[i])
		}
	}
	out := make([]candidate, len(kept))
	for i, c := range kept {
		out[i] = *c
	}
	return out
}

// ofType adds the offers of one type to out, without those that cost no less
// than another of them which serves the same.
func (k *Packer) ofType(row *fit.TypeRow, out []candidate) []candidate {
	first := len(out)
	serves := fit.NewBits(len(k.classes))
	for i := row.Offers.From; i < row.Offers.To; i++ {
		if k.reserved.Has(i) {
			continue
		}
		clear(serves)
		for class, offers := range k.classes {
			if offers.Has(i) {
				serves.Set(class)
			}
		}
		if serves.Empty() {
			continue
		}
		price := k.charged(k.catalogue.Offers[i].Price)
		same := slices.IndexFunc(out[first:], func(o candidate) bool { return slices.Equal(o.serves, serves) })
		switch {
		case same < 0:
			out = append(out, candidate{
				offer: i, pool: row.Pool, price: price, free: row.Free, room: k.roomFor(row.Free), serves: slices.Clone(serves), capacity: row.Capacity,
			})
		case price < out[first+same].price:
			out[first+same].offer, out[first+same].price = i, price
		}
	}
	return out
}

// roomFor returns what is free of the resources anybody requests.
func (k *Packer) roomFor(free model.Resources) []int64 {
	out := make([]int64, len(k.wanted))
	for i, r := range k.wanted {
		out[i] = free.At(r)
	}
	return out
}

// dominates reports whether a, which is no dearer than b, can stand in for b
// in every pattern: it has the room, serves as many classes, and takes no more
// of a pool's limits.
func (k *Packer) dominates(a, b *candidate) bool {
	for i, v := range a.room {
		if b.room[i] > v {
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
	return !slices.ContainsFunc(limited, func(r int) bool { return a.capacity.At(r) > b.capacity.At(r) })
}

func (k *Packer) capacity(offer int) model.Resources {
	return k.catalogue.Types[k.catalogue.Offers[offer].Type].Capacity
}

// trouble is what a node is charged on top of its price: of two plans that cost
// the same, the one with fewer nodes is better. It is next to nothing, also
// beside the lowest price that is not zero.
func (k *Packer) trouble() float64 {
	if k.catalogue.Least == 0 {
		return 1
	}
	return min(1, float64(k.catalogue.Least)/1e6)
}

func (k *Packer) charged(price model.Price) float64 { return float64(price) + k.trouble() }
