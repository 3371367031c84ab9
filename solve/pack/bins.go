// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// unroll turns bins of several equal nodes into bins of one.
func (x *draft) unroll() {
	var single []bin
	for _, b := range x.bins {
		for n := range b.count {
			one := b
			one.count, one.take = 1, nil
			for _, t := range b.take {
				t.chosen = t.chosen[n*t.pods : (n+1)*t.pods]
				one.take = append(one.take, t)
			}
			single = append(single, one)
		}
	}
	x.bins = single
}

// standsFor returns the pods of which p, a pod of d, is the first in a bundle,
// or p alone.
func (x *draft) standsFor(d *demand, p model.Pod) []tied {
	if len(x.bundles) > 0 {
		if pods, ok := x.bundles[p.Key()]; ok {
			return pods
		}
	}
	return []tied{{d, p}}
}

// demandsOf is what a node of the bin must satisfy: what its pool demands and
// what each of its shapes does.
func (x *draft) demandsOf(b bin) model.Requirements {
	return x.demandsWith(b, x.askedOf(b))
}

// demandsWith is demandsOf, given askedOf.
func (x *draft) demandsWith(b bin, asked model.Requirements) model.Requirements {
	return slices.DeleteFunc(x.pool(b.offer).Requirements.And(asked...), ofStart)
}

// ofStart reports whether the requirement is about a label that every node gets when it starts.
func ofStart(r model.Requirement) bool {
	return r.Key == model.LabelRegistered || r.Key == model.LabelInitialized
}

// askedOf is what a node of the bin must satisfy besides what its pool demands. An
// offer of the pool that meets it meets demandsOf, too.
func (x *draft) askedOf(b bin) model.Requirements {
	var all []model.Requirement
	for _, p := range b.take {
		all = append(all, x.demands[p.demand].At(b.offer)...)
	}
	if b.zone != "" {
		all = append(all, model.NewRequirement(model.LabelZone, model.In, b.zone))
	}
	if r, ok := x.reservationLabel(b.offer); ok {
		all = append(all, r)
	}
	return slices.DeleteFunc(model.Requirements{}.And(all...), ofStart)
}

// mayBeIn reports whether a node of the bin can meet the pins of the area.
func (x *draft) mayBeIn(b bin, a area) bool {
	for i, name := range a.labels {
		if pin, ok := a.pin(i); ok {
			if _, met := x.demandsOn(b, name).Intersects(model.Requirements{pin}); !met {
				return false
			}
		}
	}
	return true
}

// demandsOn is demandsOf as far as it is about one label.
func (x *draft) demandsOn(b bin, key string) model.Requirements {
	var out model.Requirements
	and := func(rs model.Requirements) {
		if r, ok := rs.Get(key); ok && !ofStart(r) {
			out = out.And(r)
		}
	}
	and(x.pool(b.offer).Requirements)
	for _, p := range b.take {
		and(x.demands[p.demand].At(b.offer))
	}
	if key == model.LabelZone && b.zone != "" {
		out = out.And(model.NewRequirement(model.LabelZone, model.In, b.zone))
	}
	return out
}

// offersOf is where a node of the bin could be launched.
func (x *draft) offersOf(b bin) fit.OfferSet {
	window := x.pool(b.offer).Offers.Window()
	return fit.SetIn(window, x.offersWithin(window, b), len(x.catalogue.Offers))
}

// offersWithin is offersOf in the window of the pool.
func (x *draft) offersWithin(window fit.Window, b bin) fit.Bits {
	out := x.pool(b.offer).Usable.Part(window)
	for _, p := range b.take {
		x.demands[p.demand].OffersAt(b.offer).Keep(window, out)
	}
	if b.onDemand {
		out.Keep(window.Of(x.catalogue.Match(model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand))))
	}
	if b.within != nil {
		out.Keep(b.within)
	}
	x.keepAlike(window, out, b.offer)
	return out
}

func (x *draft) podRequests(b bin) model.Resources {
	var sum model.Resources
	for _, p := range b.take {
		sum = sum.Plus(x.demands[p.demand].Shape.Requests.Times(int64(p.pods)))
	}
	return sum
}

// fitBeside reports whether free is enough for the pods of the bin and for more.
func (x *draft) fitBeside(more model.Resources, b *bin, free model.Resources) bool {
	for r := range max(len(free), len(more)) {
		sum := more.At(r)
		for _, p := range b.take {
			sum += x.demands[p.demand].Shape.Requests.At(r) * int64(p.pods)
		}
		if v := free.At(r); sum > v || v < 0 {
			return false
		}
	}
	return true
}

// stepsToSpan is what it takes to see whether the types of a launch span enough values,
// for each of them.
const stepsToSpan = 32

// spans reports whether the types that nodes of the bin can be launched as span
// what its pool demands.
func (x *draft) spans(b bin) bool {
	pool := x.poolOf(b.offer)
	if len(x.floors[pool]) == 0 {
		return true
	}
	types := x.catalogue.Pools[pool].Types
	x.budget.Spend(stepsToSpan * (types.To - types.From))
	v := x.varietyOf(pool, x.offersOf(b).Bits(), x.demandsOf(b))
	return v.enough(x.fitting(v, x.podRequests(b), b.capacity))
}

// spoils reports whether a pod of d would keep the bin, which spans what its
// pool demands, from doing so when it is launched as the offer.
func (x *draft) spoils(b bin, d *demand, offer int) bool {
	if len(x.floors[x.poolOf(b.offer)]) == 0 {
		return false
	}
	fuller := b
	fuller.offer, fuller.take = offer, append(slices.Clone(b.take), portion{demand: d.index, pods: 1})
	return x.spans(b) && !x.spans(fuller)
}

// spoiler returns spoils as a function of the offer, which works out the same only
// once: a bin is the same launched as any offer that its pods run on for the same
// reasons.
func (x *draft) spoiler(b bin, d *demand) func(offer int) bool {
	if len(x.floors[x.poolOf(b.offer)]) == 0 {
		return func(int) bool { return false }
	}
	known := map[string]bool{}
	return func(offer int) bool {
		key := binary.AppendUvarint([]byte(x.reservation(offer)), uint64(d.Under(offer)))
		for _, t := range b.take {
			key = binary.AppendUvarint(key, uint64(x.demands[t.demand].Under(offer)))
		}
		spoils, ok := known[string(key)]
		if !ok {
			spoils = x.spoils(b, d, offer)
			known[string(key)] = spoils
		}
		return spoils
	}
}

// priceOfBins returns what the new nodes cost at the offers they are planned as.
func (x *draft) priceOfBins() model.Price {
	var sum model.Price
	for _, b := range x.bins {
		sum += x.catalogue.Offers[b.offer].Price * model.Price(b.count)
	}
	return sum
}

// cost returns what the new nodes are charged.
func (x *draft) cost() float64 {
	sum := 0.0
	for _, b := range x.bins {
		sum += x.charged(x.catalogue.Offers[b.offer].Price) * float64(b.count)
	}
	return sum
}
