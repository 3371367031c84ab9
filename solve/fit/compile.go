// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// NewCatalogue compiles the pools of s that may launch nodes.
func NewCatalogue(s *model.Snapshot) *Catalogue {
	c := &Catalogue{
		wellKnown: s.WellKnown, daemons: s.Daemons, reserved: map[string]OfferSet{},
		answers: answers{
			matches: map[string]Bits{}, labels: map[poolKey]*labels{}, alike: map[string][][]int32{}, open: map[poolKey]bool{},
			words: map[poolKey][]string{}, demands: map[string]*constraints{}, spellings: map[string]*Spelling{}, sets: map[uint64]OfferSet{},
		},
	}
	for _, p := range launching(s) {
		c.add(p)
	}
	c.layOut()
	c.none = NewBits(len(c.Offers))
	c.reserve()
	c.measure()
	c.define()
	for i := range c.Pools {
		c.allow(&c.Pools[i])
	}
	c.addDaemons(s.Daemons)
	return c
}

func (c *Catalogue) add(p *model.Pool) {
	c.Pools = append(c.Pools, Pool{Pool: p, Requirements: p.Requirements.And(
		model.NewRequirement(model.LabelNodePool, model.In, p.Name),
		model.NewRequirement(model.LabelRegistered, model.In, "true"),
		model.NewRequirement(model.LabelInitialized, model.In, "true"),
	)})
}

// launching returns the pools of s that may launch nodes by weight, heaviest
// first, then by name, last first.
func launching(s *model.Snapshot) []*model.Pool {
	var out []*model.Pool
	for i := range s.Pools {
		if s.Pools[i].Unavailable == "" {
			out = append(out, &s.Pools[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *model.Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Name, a.Name))
	})
	return out
}

// measure finds the quantum of prices, by Euclid's algorithm, and the lowest.
func (c *Catalogue) measure() {
	c.Quantum, c.Least = 0, 0
	for i := range c.Offers {
		p := c.Offers[i].Price
		if p > 0 && (c.Least == 0 || p < c.Least) {
			c.Least = p
		}
		for p != 0 {
			c.Quantum, p = p, c.Quantum%p
		}
	}
	c.Quantum = max(c.Quantum, 1)
}

func (c *Catalogue) layOut() {
	for i := range c.Pools {
		p := &c.Pools[i]
		p.Types.From, p.Offers.From = len(c.Types), len(c.Offers)
		for _, t := range p.Pool.Types {
			row := TypeRow{InstanceType: t, Pool: i, Free: t.Allocatable, Offers: Range{From: len(c.Offers)}}
			for j := range t.Offerings {
				c.Offers = append(c.Offers, Offer{Offering: &t.Offerings[j], Type: len(c.Types)})
			}
			row.Offers.To = len(c.Offers)
			c.Types = append(c.Types, row)
		}
		p.Types.To, p.Offers.To = len(c.Types), len(c.Offers)
	}
}

// define notes the labels that nodes may have.
func (c *Catalogue) define() {
	c.defined = map[string]bool{}
	note := func(rs model.Requirements) {
		for i := range rs {
			if !c.defined[rs[i].Key] {
				c.defined[rs[i].Key] = true
			}
		}
	}
	for i := range c.Types {
		note(c.Types[i].Requirements)
	}
	for i := range c.Offers {
		note(c.Offers[i].Requirements)
	}
	for i := range c.Pools { // what no type or offer knows anything of excludes none
		p := &c.Pools[i]
		p.telling = slices.DeleteFunc(slices.Clone(p.Requirements), func(r model.Requirement) bool { return !c.defined[r.Key] })
	}
	for i := range c.Pools {
		note(c.Pools[i].Requirements)
	}
}

// reserve finds the offers of each reservation.
func (c *Catalogue) reserve() {
	of := map[string][]int32{}
	for i := range c.Offers {
		if id := c.Offers[i].ReservationID; id != "" {
			of[id] = append(of[id], int32(i))
		}
	}
	for id, offers := range of {
		c.reserved[id] = SetOf(len(c.Offers), offers)
	}
}

// allow finds the offers that every requirement of the pool itself allows, and
// among them those that are available.
func (c *Catalogue) allow(p *Pool) {
	window := p.Offers.Window()
	allowed, usable := window.Empty(), window.Empty()
	for t := p.Types.From; t < p.Types.To; t++ {
		row := &c.Types[t]
		if _, ok := row.Requirements.Intersects(p.telling); !ok {
			continue
		}
		for i := row.Offers.From; i < row.Offers.To; i++ {
			if _, ok := c.Offers[i].Requirements.Intersects(p.telling); !ok {
				continue
			}
			allowed.Set(i - window.First())
			if c.Offers[i].Available {
				usable.Set(i - window.First())
			}
		}
	}
	p.Allowed, p.Usable = SetIn(window, allowed, len(c.Offers)), SetIn(window, usable, len(c.Offers))
}

// addDaemons takes the requests of the daemons that run on each type row out
// of what is free there.
func (c *Catalogue) addDaemons(daemons []model.Daemon) {
	for i := range daemons {
		d := daemons[i].Shape
		hosts := c.hosts(d)
		for t := range c.Types {
			if row := &c.Types[t]; hosts.Any(row.Offers) {
				row.Daemon = row.Daemon.Plus(d.Requests)
			}
		}
	}
	for i := range c.Types {
		row := &c.Types[i]
		row.Free = row.Allocatable.Minus(row.Daemon)
		c.most = c.most.Max(row.Free)
	}
}

// hosts returns the offers of nodes that daemons of the shape may run on.
func (c *Catalogue) hosts(d *model.Shape) Bits {
	out := NewBits(len(c.Offers))
	for i := range c.Pools {
		if _, bad := model.Untolerated(model.Firm(c.Pools[i].Taints), d.Tolerations); !bad {
			out.Add(c.in(c.Pools[i].Offers))
		}
	}
	demands := d.Alternatives()
	for i := range demands {
		demands[i] = withName(demands[i])
	}
	return out.And(c.Any(demands))
}

// withName returns what is left to demand of a new node, which has a name that
// no one knows yet.
func withName(rs model.Requirements) model.Requirements {
	if r, ok := rs.Get(model.LabelHostname); !ok || !r.Complement || r.Gte.Set || r.Lte.Set {
		return rs
	}
	return rs.Without(model.LabelHostname)
}
