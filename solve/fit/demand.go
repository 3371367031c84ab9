package fit

import (
	"karpenter/model"
)

// Demand is the pods of one shape that need a place, with where they may go.
type Demand struct {
	Shape *model.Shape
	Pods  []model.Pod

	// Offers is where a new node for such a pod could be bought.
	Offers Bits
	alts   []alternative
}

// alternative is one conjunction of the shape's node affinity.
type alternative struct {
	demands model.Requirements
	offers  Bits
}

// NewDemand compiles the shape against the catalogue.
func (c *Catalogue) NewDemand(p model.Pending) *Demand {
	d := &Demand{Shape: p.Shape, Pods: p.Pods, Offers: NewBits(len(c.Offers))}
	base := c.roomy(p.Shape, c.tolerated(p.Shape))
	for _, demands := range p.Shape.Alternatives() {
		offers := base.And(c.MatchAll(demands))
		d.alts = append(d.alts, alternative{demands, offers})
		d.Offers = d.Offers.Or(offers)
	}
	return d
}

// At returns the conjunction under which the shape runs on an offer of
// Offers: the first of its alternatives that allows it.
func (d *Demand) At(offer int) model.Requirements {
	for _, a := range d.alts {
		if a.offers.Has(offer) {
			return a.demands
		}
	}
	return nil
}

// tolerated returns the usable offers of the pools whose taints s tolerates.
func (c *Catalogue) tolerated(s *model.Shape) Bits {
	out := NewBits(len(c.Offers))
	for i := range c.Pools {
		if _, bad := model.Untolerated(c.Pools[i].Taints, s.Tolerations); !bad {
			out = out.Or(c.Pools[i].Usable)
		}
	}
	return out
}

// roomy returns the offers among from that one pod of s fits on when empty.
func (c *Catalogue) roomy(s *model.Shape, from Bits) Bits {
	out := NewBits(len(c.Offers))
	for i := range c.Types {
		row := &c.Types[i]
		if !s.Requests.Fits(row.Free) {
			continue
		}
		for j := row.Offers.From; j < row.Offers.To; j++ {
			if from.Has(j) {
				out.Set(j)
			}
		}
	}
	return out
}
