// SPDX-License-Identifier: Apache-2.0

package fit

import "karpenter/model"

// mostJoined is how many alternatives Join keeps: those of several demands multiply.
const mostJoined = 256

// Join returns the demand of pods that can be where pods of all the demands can, and
// where the pins are met, with the pins as selector and the alternatives as terms. It
// leaves out alternatives that allow no offer and, of several demands, all but the first
// of very many. The shape says what else the pods ask for; steps is what it took.
func (c *Catalogue) Join(s model.Shape, pins model.Requirements, ds ...*Demand) (joined *Demand, steps int) {
	alts := []alternative{{pins, NewOfferSet(c.MatchAll(pins))}}
	for _, d := range ds {
		var next []alternative
		for i := range alts {
			for j := range d.alts {
				steps += len(c.Offers)/64 + len(alts[i].demands) + len(d.alts[j].demands)
				if both := c.both(&alts[i], &d.alts[j]); !both.offers.Empty() && (len(next) < mostJoined || len(ds) == 1) {
					next = append(next, both)
				}
			}
		}
		alts = next
	}
	s.Selector, s.Terms, s.VolumeTerms, s.DeviceTerms, s.GroupTerms = pins, nil, nil, nil, nil
	if len(alts) == 0 {
		s.Terms = []model.Requirements{{model.NewRequirement(model.LabelZone, model.In)}} // which no node meets
	}
	for i := range alts {
		alts[i].offers = c.one(alts[i].offers)
		s.Terms = append(s.Terms, alts[i].demands)
	}
	return &Demand{Shape: &s, constraints: &constraints{Offers: c.union(alts), alts: alts}}, steps
}

// both returns the conjunction of two, with those of the offers of both that meet it:
// all of them, but for labels that both name and nodes can have one of several values of.
func (c *Catalogue) both(a, b *alternative) alternative {
	offers := a.offers.And(b.offers)
	if offers.Empty() {
		return alternative{}
	}
	demands := a.demands.And(b.demands...)
	for _, r := range b.demands {
		if _, named := a.demands.Get(r.Key); named {
			together, _ := demands.Get(r.Key)
			if open := c.Spelling(r.Key).Open; !open.Empty() {
				offers = offers.And(NewOfferSet(c.Match(together)))
			}
		}
	}
	return alternative{demands, offers}
}
