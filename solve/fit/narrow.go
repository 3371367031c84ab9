// SPDX-License-Identifier: Apache-2.0

package fit

import "karpenter/model"

// Narrow returns d with the offers that keep returns of those allowed under
// each of its alternatives.
func (c *Catalogue) Narrow(d *Demand, keep func(demands model.Requirements, offers Bits) Bits) *Demand {
	var alts []alternative
	for _, a := range d.alts {
		alts = append(alts, alternative{a.demands, NewOfferSet(keep(a.demands, a.offers.Bits()))})
	}
	return c.with(d, alts)
}

// Only returns d with the offers that are in all of the sets.
func (c *Catalogue) Only(d *Demand, sets ...OfferSet) *Demand {
	var alts []alternative
	for _, a := range d.alts {
		offers := a.offers
		for _, s := range sets {
			offers = offers.And(s)
		}
		alts = append(alts, alternative{a.demands, offers})
	}
	return c.with(d, alts)
}

// with returns d with these alternatives.
func (c *Catalogue) with(d *Demand, alts []alternative) *Demand {
	return &Demand{d.Shape, d.Pods, &constraints{Offers: c.union(alts), alts: alts}}
}
