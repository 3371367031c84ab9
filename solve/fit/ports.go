// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	"karpenter/model"
)

// Conflict reports whether a pod that takes ports cannot be where taken are.
func Conflict(ports, taken []model.HostPort) bool {
	return slices.ContainsFunc(ports, func(p model.HostPort) bool {
		return slices.ContainsFunc(taken, p.Conflicts)
	})
}

// Taken returns the offers of nodes on which daemons take a port that conflicts
// with one of ports.
func (c *Catalogue) Taken(ports []model.HostPort, daemons []model.Daemon) Bits {
	out := NewBits(len(c.Offers))
	for i := range daemons {
		if d := daemons[i].Shape; Conflict(ports, d.HostPorts) {
			out.Add(c.hosts(d))
		}
	}
	return out
}

// Except returns d without the types that could turn out as one of these
// offers, which may be sold out now and not when the node is launched. Of such a
// type those zones or capacity types are left that none of these offers has, if the
// launch asks for them.
func (c *Catalogue) Except(d *Demand, offers Bits) *Demand {
	allowed := NewBits(len(c.Offers))
	for i := range c.Pools {
		c.Pools[i].Allowed.AddTo(allowed)
	}
	var alts []alternative
	for _, a := range d.alts {
		bad, left, rest := c.MatchAll(a.demands).And(allowed).And(offers), NewBits(len(c.Offers)), NewBits(len(c.Offers))
		for i := range a.offers.Bits().All() {
			if bad.Any(c.Types[c.Offers[i].Type].Offers) {
				rest.Set(i)
			} else {
				left.Set(i)
			}
		}
		alts = append(alts, alternative{a.demands, NewOfferSet(left)})
		for _, key := range []string{model.LabelZone, model.LabelCapacityType} {
			if values, some := c.valuesLess(key, rest, bad); len(values) > 0 {
				alts = append(alts, alternative{a.demands.And(model.NewRequirement(key, model.In, values...)), NewOfferSet(some)})
			}
		}
	}
	return c.with(d, alts)
}

// valuesLess returns the values of a label that some of the offers have and none of
// the bad ones, and the offers that have them.
func (c *Catalogue) valuesLess(key string, offers, bad Bits) (values []string, some Bits) {
	some = NewBits(len(c.Offers))
	spelled := c.Spelling(key)
	spoilt := map[int32]bool{}
	for i := range bad.All() {
		spoilt[spelled.Of[i]] = true
	}
	for i := range offers.All() {
		if of := spelled.Of[i]; of >= 0 && !spoilt[of] && len(spelled.Labels[of].Values) == 1 && !spelled.Labels[of].Complement {
			values = append(values, spelled.Labels[of].Values...)
			some.Set(i)
		}
	}
	slices.Sort(values)
	return slices.Compact(values), some
}
