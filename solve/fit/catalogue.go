package fit

import (
	"cmp"
	"maps"
	"slices"

	"karpenter/model"
)

// Catalogue is everything that can be bought in a Snapshot: the type rows and
// offers of its pools, heaviest pool first.
type Catalogue struct {
	Pools  []Pool
	Types  []TypeRow
	Offers []Offer

	// Quantum is the largest price that all prices are multiples of, and Least
	// the lowest of them that is not zero.
	Quantum, Least model.Price

	defined   map[string]bool // labels of which some pool, type or offer knows a value
	wellKnown model.LabelSet
	daemons   []model.Daemon
	reserved  map[string]Bits // reservation → its offers
	matches   map[string]Bits // requirement text → offers that allow it
	labels    map[poolKey][]labelled
	open      map[poolKey]bool
	demands   map[string]*Demand // constraints → compiled, without pods
}

// Pool is a pool with its rows.
type Pool struct {
	*model.Pool
	// Requirements are the pool's own with its name and the labels every
	// registered node gets added.
	Requirements model.Requirements
	Types        Range // of Catalogue.Types
	Offers       Range // of Catalogue.Offers
	Allowed      Bits  // offers that the pool's own requirements allow
	Usable       Bits  // those of them that can be launched now
}

// Range is a half-open interval of indices.
type Range struct{ From, To int }

// TypeRow is an instance type in one pool.
type TypeRow struct {
	*model.InstanceType
	Pool   int
	Offers Range
	Daemon model.Resources // what the pool's daemons take on such a node
	Free   model.Resources // what is left for pods
}

// Offer is one offering of a type row.
type Offer struct {
	*model.Offering
	Type int
}

type poolKey struct {
	pool int
	key  string
}

// NewCatalogue compiles the pools of s that may launch nodes.
func NewCatalogue(s *model.Snapshot) *Catalogue {
	c := &Catalogue{
		wellKnown: s.WellKnown, daemons: s.Daemons, reserved: map[string]Bits{},
		matches: map[string]Bits{}, labels: map[poolKey][]labelled{}, open: map[poolKey]bool{}, demands: map[string]*Demand{},
	}
	for _, p := range launching(s) {
		c.add(p)
	}
	c.layOut()
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
			c.defined[rs[i].Key] = true
		}
	}
	for i := range c.Pools {
		note(c.Pools[i].Requirements)
	}
	for i := range c.Types {
		note(c.Types[i].Requirements)
	}
	for i := range c.Offers {
		note(c.Offers[i].Requirements)
	}
}

// reserve finds the offers of each reservation.
func (c *Catalogue) reserve() {
	for i := range c.Offers {
		id := c.Offers[i].ReservationID
		if id == "" {
			continue
		}
		if c.reserved[id] == nil {
			c.reserved[id] = NewBits(len(c.Offers))
		}
		c.reserved[id].Set(i)
	}
}

// Reserved returns the offers that take from the reservation.
func (c *Catalogue) Reserved(id string) Bits { return c.reserved[id] }

// Reservations returns the reservations that some offer takes from, sorted.
func (c *Catalogue) Reservations() []string { return slices.Sorted(maps.Keys(c.reserved)) }

// allow finds the offers that every requirement of the pool itself allows, and
// among them those that are available.
func (c *Catalogue) allow(p *Pool) {
	p.Allowed, p.Usable = NewBits(len(c.Offers)), NewBits(len(c.Offers))
	for i := p.Offers.From; i < p.Offers.To; i++ {
		o := &c.Offers[i]
		if _, ok := c.Types[o.Type].Requirements.Intersects(p.Requirements); !ok {
			continue
		}
		if _, ok := o.Requirements.Intersects(p.Requirements); !ok {
			continue
		}
		p.Allowed.Set(i)
		if o.Available {
			p.Usable.Set(i)
		}
	}
}

// in returns the offers of a range.
func (c *Catalogue) in(r Range) Bits {
	out := NewBits(len(c.Offers))
	i := r.From
	for ; i < r.To && i%64 != 0; i++ {
		out.Set(i)
	}
	for ; i+64 <= r.To; i += 64 {
		out[i/64] = ^uint64(0)
	}
	for ; i < r.To; i++ {
		out.Set(i)
	}
	return out
}

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
	for _, alt := range s.Alternatives() {
		if slices.ContainsFunc(alt, func(r model.Requirement) bool { return c.Open(pool, r.Key) }) {
			return true
		}
	}
	return false
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
	out := have
	for _, r := range more {
		if !c.Open(pool, r.Key) {
			continue
		}
		base, _ := c.Pools[pool].Requirements.Get(r.Key)
		if h, ok := out.Get(r.Key); ok {
			base = base.Intersect(h)
		}
		if !agree(base, r) {
			return have, false
		}
		out = out.And(r)
	}
	return out, true
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
	}
}

// hosts returns the offers of nodes that daemons of the shape may run on.
func (c *Catalogue) hosts(d *model.Shape) Bits {
	out := NewBits(len(c.Offers))
	for i := range c.Pools {
		if _, bad := model.Untolerated(firm(c.Pools[i].Taints), d.Tolerations); !bad {
			out.Add(c.in(c.Pools[i].Offers))
		}
	}
	return out.And(c.Any(d.Alternatives()))
}

// firm returns the taints that keep a daemon away for good.
func firm(taints []model.Taint) []model.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}
