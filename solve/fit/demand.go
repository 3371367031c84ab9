// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"

	"karpenter/model"
)

// Demand is the pods of one shape that need a place, with where they may go.
type Demand struct {
	Shape *model.Shape
	Pods  []model.Pod
	*constraints
}

// NewDemand compiles the shape against the catalogue, and keeps what it compiled for
// shapes with equal constraints.
func (c *Catalogue) NewDemand(p model.Pending) *Demand { return c.demand(p, true) }

// Once is NewDemand of a shape that no one asks about again.
func (c *Catalogue) Once(s *model.Shape) *Demand { return c.demand(model.Pending{Shape: s}, false) }

func (c *Catalogue) demand(p model.Pending, keep bool) *Demand {
	alternatives := p.Shape.Alternatives()
	key := constraintKey(alternatives, p.Shape.Tolerations)
	same, ok := c.demands[key]
	if !ok {
		same = c.constrain(alternatives, p.Shape.Tolerations)
	}
	if keep && !ok {
		c.demands[key] = same
		c.alternatives += len(alternatives)
	}
	return &Demand{p.Shape, p.Pods, same}
}

// constrain sees no more of a shape than constraintKey does: shapes with equal
// keys share what it returns.
func (c *Catalogue) constrain(alternatives []model.Requirements, tolerations []model.Toleration) *constraints {
	out := &constraints{}
	base, left := c.tolerated(tolerations), NewBits(len(c.Offers))
	for _, demands := range alternatives {
		copy(left, base)
		c.narrow(left, demands)
		out.alts = append(out.alts, alternative{demands, c.one(NewOfferSet(left))})
	}
	out.Offers = c.union(out.alts)
	return out
}

// union returns the offers that one of the alternatives allows.
func (c *Catalogue) union(alts []alternative) OfferSet {
	if len(alts) == 1 {
		return alts[0].offers
	}
	all := NewBits(len(c.Offers))
	for i := range alts {
		alts[i].offers.AddTo(all)
	}
	return c.one(NewOfferSet(all))
}

// mostShared is up to how many words of sets are kept to be found again.
const mostShared = 1 << 23

// one returns the first set that was equal to s: many pods may be launched for on the same
// offers for different reasons.
func (c *Catalogue) one(s OfferSet) OfferSet {
	if s.bits == nil { // lists are small
		return s
	}
	digest := s.Digest()
	known, ok := c.sets[digest]
	if ok && known.Equal(s) {
		return known
	}
	if !ok {
		if c.setWords += len(s.bits); c.setWords > mostShared {
			clear(c.sets)
			c.setWords = len(s.bits)
		}
		c.sets[digest] = s
	}
	return s
}

// constraintKey is equal for shapes with equal selectors, terms and
// tolerations.
func constraintKey(alternatives []model.Requirements, tolerations []model.Toleration) string {
	key := binary.AppendUvarint(nil, uint64(len(alternatives)))
	for _, alt := range alternatives {
		key = appendKeys(key, alt)
	}
	for _, t := range tolerations {
		key = fmt.Appendf(key, "%q %t %q %q %q;", t.Key, t.Exists, t.Compare, t.Value, t.Effect)
	}
	return string(key)
}

// Alternatives yields each conjunction of which a node must satisfy one, with
// the offers it allows.
func (d *Demand) Alternatives() iter.Seq2[model.Requirements, Bits] {
	return func(yield func(model.Requirements, Bits) bool) {
		for _, a := range d.alts {
			if !yield(a.demands, a.offers.Bits()) {
				return
			}
		}
	}
}

// Constraints returns a digest that is equal for demands that may run on the same
// offers for the same reasons.
func (c *constraints) Constraints() string {
	if c.digest != "" {
		return c.digest
	}
	h := sha256.New()
	for _, a := range c.alts {
		h.Write(appendKeys(nil, a.demands))
		h.Write([]byte("|" + a.offers.Key()))
	}
	c.digest = string(h.Sum(nil))
	return c.digest
}

// At returns the conjunction under which the shape runs on an offer of
// Offers: the first of its alternatives that allows it.
func (d *Demand) At(offer int) model.Requirements {
	if i := d.Under(offer); i < len(d.alts) {
		return d.alts[i].demands
	}
	return nil
}

// Under returns the position of the conjunction that At returns, or how many there
// are.
func (d *Demand) Under(offer int) int {
	if !d.Offers.Has(offer) {
		return len(d.alts)
	}
	for i := range d.alts {
		if d.alts[i].offers.Has(offer) {
			return i
		}
	}
	return len(d.alts)
}

// OffersAt returns the offers allowed under the conjunction that At returns.
func (d *Demand) OffersAt(offer int) OfferSet {
	for _, a := range d.alts {
		if a.offers.Has(offer) {
			return a.offers
		}
	}
	return OfferSet{}
}

// tolerated returns the usable offers of the pools whose taints are tolerated.
func (c *Catalogue) tolerated(tolerations []model.Toleration) Bits {
	out := NewBits(len(c.Offers))
	for i := range c.Pools {
		if _, bad := model.Untolerated(c.Pools[i].Taints, tolerations); !bad {
			c.Pools[i].Usable.AddTo(out)
		}
	}
	return out
}

// roomy returns the offers among from that one pod of s fits on when empty.
func (c *Catalogue) roomy(s *model.Shape, from Bits) Bits {
	out := NewBits(len(c.Offers))
	if c.exceeds(s.Requests) {
		return out
	}
	last, fits := -1, false
	for i := range from.All() {
		if t := c.Offers[i].Type; t != last { // offers of a type follow each other
			last, fits = t, s.Requests.Fits(c.Types[t].Free)
		}
		if fits {
			out.Set(i)
		}
	}
	return out
}

// Fits reports whether a pod of d may run alone on a new node of some offer in
// the range.
func (c *Catalogue) Fits(d *Demand, offers Range) bool {
	if c.exceeds(d.Shape.Requests) {
		return false
	}
	last := -1
	for i := range d.Offers.In(offers) {
		if t := c.Offers[i].Type; t != last {
			if last = t; d.Shape.Requests.Fits(c.Types[t].Free) {
				return true
			}
		}
	}
	return false
}

// exceeds reports whether no type has as much of some resource as is requested.
func (c *Catalogue) exceeds(requests model.Resources) bool {
	for i, v := range requests {
		if v > c.most.At(i) {
			return true
		}
	}
	return false
}
