// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	"karpenter/model"
)

// Open reports whether the pool leaves the value of key undecided for some
// node it could launch, so that pods sharing a node must agree on it.
func (c *Catalogue) Open(pool int, key string) bool {
	k := poolKey{pool, key}
	if o, ok := c.open[k]; ok {
		return o
	}
	o := c.isOpen(&c.Pools[pool], key)
	c.open[k] = o
	return o
}

// Asks reports whether the shape demands something of a key the pool leaves
// open.
func (c *Catalogue) Asks(pool int, s *model.Shape) bool {
	asks := func(rs model.Requirements) bool {
		return slices.ContainsFunc(rs, func(r model.Requirement) bool { return c.Open(pool, r.Key) })
	}
	some := func(terms []model.Requirements) bool { return slices.ContainsFunc(terms, asks) }
	return asks(s.Selector) || some(s.Terms) || some(s.VolumeTerms) || some(s.DeviceTerms) || some(s.GroupTerms)
}

func (c *Catalogue) isOpen(p *Pool, key string) bool {
	if _, pinned := p.Requirements.Value(key); pinned {
		return false
	}
	_, own := p.Requirements.Get(key)
	for i := p.Types.From; i < p.Types.To; i++ {
		row := &c.Types[i]
		t, defined := row.Requirements.Get(key)
		if !defined && !own || t.Operator() == model.DoesNotExist {
			continue
		}
		if _, pinned := row.Requirements.Value(key); !pinned && !c.offersPin(row, key) {
			return true
		}
	}
	return false
}

func (c *Catalogue) offersPin(row *TypeRow, key string) bool {
	for j := row.Offers.From; j < row.Offers.To; j++ {
		if _, pinned := c.Offers[j].Requirements.Value(key); !pinned {
			return false
		}
	}
	return true
}

// Agree merges the demands of more pods into what the pods already on a new
// node of the pool demand of its open keys. It reports false when no value
// would suit them all.
func (c *Catalogue) Agree(pool int, have, more model.Requirements) (model.Requirements, bool) {
	var demands model.Requirements
	for _, r := range more {
		if !c.Open(pool, r.Key) {
			continue
		}
		base, _ := c.Pools[pool].Requirements.Get(r.Key)
		if h, ok := have.Get(r.Key); ok {
			base = base.Intersect(h)
		}
		if !agree(base, r) {
			return have, false
		}
		demands = append(demands, r)
	}
	if len(demands) == 0 {
		return have, true
	}
	return have.And(demands...), true
}
