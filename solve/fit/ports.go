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
// offers.
func (c *Catalogue) Except(d *Demand, offers Bits) *Demand {
	return c.Narrow(d, func(_ model.Requirements, have Bits) Bits {
		bad, left := have.And(offers), NewBits(len(c.Offers))
		for i := range have.All() {
			if !bad.Any(c.Types[c.Offers[i].Type].Offers) {
				left.Set(i)
			}
		}
		return left
	})
}

// Narrow returns d with the offers that keep returns of those allowed under
// each of its alternatives.
func (c *Catalogue) Narrow(d *Demand, keep func(demands model.Requirements, offers Bits) Bits) *Demand {
	out := &Demand{d.Shape, d.Pods, &constraints{Offers: NewBits(len(c.Offers))}}
	for _, a := range d.alts {
		left := keep(a.demands, a.offers)
		out.alts = append(out.alts, alternative{a.demands, left})
		out.Offers = out.Offers.Or(left)
	}
	return out
}

// Only returns d with the offers that are in all of the sets.
func (c *Catalogue) Only(d *Demand, sets ...Bits) *Demand {
	out := &Demand{d.Shape, d.Pods, &constraints{Offers: d.Offers}}
	for _, s := range sets {
		out.Offers = out.Offers.And(s)
	}
	for _, a := range d.alts {
		out.alts = append(out.alts, alternative{a.demands, a.offers.And(out.Offers)})
	}
	return out
}

// Defines reports whether some pool, type or offer demands anything of a label.
func (c *Catalogue) Defines(key string) bool { return c.defined[key] }

// Label returns what is known of a label of a node bought from the offer. It
// reports false when the node lacks the label.
func (c *Catalogue) Label(offer int, key string) (model.Requirement, bool) {
	if !c.defined[key] {
		return model.Requirements(nil).Get(key)
	}
	o := &c.Offers[offer]
	row := &c.Types[o.Type]
	if r, ok := o.Requirements.Get(key); ok && !r.Complement && len(r.Values) == 1 {
		return r, true
	}
	own, defined := c.Pools[row.Pool].Requirements.Get(key)
	t, has := row.Requirements.Get(key)
	switch {
	case !defined && !has:
		return own, false
	case defined && has:
		own = own.Intersect(t)
	case has:
		own = t
	}
	return own, own.Complement || len(own.Values) > 0
}
