package pack

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// cell is what a demand sees of a place: the nodes there that take its pods,
// and what a new node there costs it.
type cell struct {
	id    string
	place topology.Place
	pins  model.Requirements // what settles a new node for the place
	names []string           // of its domains, by key

	tier  int     // position of the heaviest tier that sells nodes there; noTier = none does
	price float64 // of the part of the cheapest such node that one pod takes
	each  int     // pods such a node takes
	most  int     // pods that may be bought nodes for

	rows   []int // of Packer.nodes
	rooms  []int // by rows: pods it still takes
	placed []int // by rows: pods settled for it
	room   int   // sum of rooms
	bought int   // pods settled for new nodes
}

const noTier = math.MaxInt

// area is a cell as far as it is the same for all demands: those that are tied
// to domains of the same keys share a list of them.
type area struct {
	id     string
	place  topology.Place
	pins   model.Requirements
	names  []string
	offers []int
}

// areas returns the places nodes can be bought in, told apart by the keys of
// these numbers only, ordered by the values of their labels.
func (k *Packer) areas(keys []int) []area {
	name := placeID(nil, keys)
	if known, ok := k.divided[name]; ok {
		return known
	}
	index, alike := map[string]int{}, map[string][]int{}
	var out []area
	for o := range k.catalogue.Offers {
		labels := k.labelsOf(o, keys)
		in, known := alike[labels]
		if !known {
			for _, p := range k.placesOf(o, keys) {
				id := placeID(p, keys)
				i, ok := index[id]
				if !ok {
					i = len(out)
					index[id] = i
					out = append(out, k.newArea(id, p, keys))
				}
				in = append(in, i)
			}
			alike[labels] = in
		}
		for _, i := range in {
			out[i].offers = append(out[i].offers, o)
		}
	}
	slices.SortFunc(out, func(a, b area) int { return slices.Compare(a.names, b.names) })
	k.divided[name] = out
	return out
}

// labelsOf returns a text that is equal for offers whose nodes may be in the same
// places.
func (k *Packer) labelsOf(offer int, keys []int) string {
	var b strings.Builder
	for _, key := range keys {
		if label, ok := k.catalogue.Label(offer, k.topology.Keys[key]); ok {
			b.WriteString(exact(label))
		}
		b.WriteByte(0)
	}
	return b.String()
}

// mostPlaces bounds how many combinations of values of open labels are told
// apart. More domains than these are of no use to any number of pods that is
// planned for at once, and looking at all of them is not bounded by anything.
const mostPlaces = 1024

// placesOf returns where a node bought from the offer may be.
func (k *Packer) placesOf(offer int, keys []int) []topology.Place {
	places := []topology.Place{make(topology.Place, len(k.topology.Keys))}
	most := int(math.Pow(mostPlaces, 1/float64(len(keys))))
	for _, key := range keys {
		label, ok := k.catalogue.Label(offer, k.topology.Keys[key])
		if !ok {
			continue
		}
		values := k.openValues(key, label, most)
		var more []topology.Place
		for _, p := range places {
			for _, v := range values {
				q := slices.Clone(p)
				q[key] = []int{k.topology.Domain(key, v)}
				more = append(more, q)
			}
		}
		places = more
	}
	return places
}

// openValues returns the values of a key that a label allows, at most so many: those
// that nodes or pods name come first.
func (k *Packer) openValues(key int, label model.Requirement, most int) []string {
	if !label.Complement && len(label.Values) <= most {
		return label.Values
	}
	values := slices.DeleteFunc(k.mentioned(key, label.Complement), func(v string) bool { return !label.Has(v) })
	if !label.Complement {
		for _, v := range label.Values {
			if len(values) >= most {
				break
			}
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	values = values[:min(len(values), most)]
	slices.Sort(values)
	return values
}

// mentioned returns the values of a key that nodes or pods name and, when asked
// for, those that pools do: a pool that leaves the label open can have any of
// them.
func (k *Packer) mentioned(key int, pools bool) []string {
	name := k.topology.Keys[key]
	var out []string
	add := func(rs model.Requirements) {
		if r, ok := rs.Get(name); ok && !r.Complement {
			out = append(out, r.Values...)
		}
	}
	for i := range k.snapshot.Nodes {
		add(k.snapshot.Nodes[i].Labels)
	}
	for i := range k.snapshot.Pools {
		if pools {
			add(k.snapshot.Pools[i].Requirements)
		}
	}
	for i := range k.snapshot.Pending {
		for _, alt := range k.snapshot.Pending[i].Shape.Alternatives() {
			add(alt)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (k *Packer) newArea(id string, p topology.Place, keys []int) area {
	a := area{id: id, place: p}
	for _, key := range keys {
		name := k.topology.Keys[key]
		if len(p[key]) == 0 {
			a.pins = a.pins.And(model.NewRequirement(name, model.DoesNotExist))
			a.names = append(a.names, "")
			continue
		}
		value := k.topology.Value(key, p[key][0])
		a.pins = a.pins.And(model.NewRequirement(name, model.In, value))
		a.names = append(a.names, value)
	}
	return a
}

// suits reports whether a node in the area can meet the demands.
func (a *area) suits(demands model.Requirements) bool {
	_, ok := demands.Intersects(a.pins)
	return ok
}

// placeID is equal for places that agree in the keys.
func placeID(p topology.Place, keys []int) string {
	var b []byte
	for _, key := range keys {
		b = binary.AppendUvarint(b, uint64(key))
		if p == nil {
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(p[key])))
		for _, d := range p[key] {
			b = binary.AppendUvarint(b, uint64(d))
		}
	}
	return string(b)
}

// cellsOf returns the places pods of d could go to, told apart by keys.
func (k *Packer) cellsOf(d *demand, keys []int) []*cell {
	var out []*cell
	index := map[string]*cell{}
	alternatives := d.Shape.Alternatives()
	for _, a := range k.areas(keys) {
		if !slices.ContainsFunc(alternatives, a.suits) {
			continue
		}
		c := &cell{id: a.id, place: a.place, pins: a.pins, names: a.names, tier: noTier}
		k.quote(c, d, a.offers)
		index[a.id] = c
		out = append(out, c)
	}
	for _, i := range k.liking(d) {
		n := &k.nodes[i]
		room := k.room(d, n, len(d.left))
		if room == 0 {
			continue
		}
		place := k.topology.At(n.Site)
		id := placeID(place, keys)
		c := index[id]
		if c == nil {
			c = &cell{id: id, place: place, tier: noTier}
			index[id] = c
			out = append(out, c)
		}
		c.rows, c.rooms, c.placed = append(c.rows, i), append(c.rooms, room), append(c.placed, 0)
		c.room += room
	}
	return slices.DeleteFunc(out, func(c *cell) bool { return c.room == 0 && c.tier == noTier })
}

// quote sets what a new node in the cell would cost a pod of d.
func (k *Packer) quote(c *cell, d *demand, offers []int) {
	c.most = topology.Unbounded
	if most, ok := k.learned[lesson{d.kind, c.name()}]; ok {
		c.most = most
	}
	if c.most == 0 {
		return
	}
	settled := k.settledFor(d, c)
	for _, o := range offers {
		if !d.Offers.Has(o) || k.reserved.Has(o) || !settled(o) {
			continue
		}
		row := &k.catalogue.Types[k.catalogue.Offers[o].Type]
		tier := k.tierOf[row.Pool]
		if tier > c.tier {
			continue
		}
		room := fit.Room(row.Free, d.Shape.Requests, topology.Unbounded)
		if room == 0 || k.limits.allow(row.Pool, row.Capacity, 1) == 0 {
			continue
		}
		if price := float64(k.catalogue.Offers[o].Price) / float64(room); tier < c.tier || price < c.price {
			c.tier, c.price, c.each = tier, price, min(room, k.topology.Most(d.kind))
		}
	}
	if c.tier == noTier {
		k.quotePrepaid(c, d, offers)
	}
}

// open reports whether the cell takes another pod, rules between pods not
// asked.
func (c *cell) open() bool { return c.room > 0 || c.tier != noTier && c.bought < c.most }

// begun is 1 when pods settled for the cell leave room on the last of its new
// nodes.
func (c *cell) begun() int {
	if c.room == 0 && c.each > 0 && c.bought%c.each > 0 {
		return 1
	}
	return 0
}

// byPreference orders cells for the next pod: room there is already before new
// nodes, heavy pools before light, cheap before dear, nodes that others of the
// pods need anyway before more of them; then where fewest are.
func (k *Packer) byPreference(d *demand, a, b *cell) int {
	return cmp.Or(
		cmp.Compare(min(b.room, 1), min(a.room, 1)),
		cmp.Compare(a.effectiveTier(), b.effectiveTier()),
		cmp.Compare(a.effectivePrice(), b.effectivePrice()),
		cmp.Compare(b.begun(), a.begun()),
		cmp.Compare(k.topology.Count(d.kind, a.place), k.topology.Count(d.kind, b.place)),
		a.compareNames(b),
	)
}

func (c *cell) effectiveTier() int {
	if c.room > 0 {
		return 0
	}
	return c.tier
}

func (c *cell) effectivePrice() float64 {
	if c.room > 0 {
		return 0
	}
	return c.price
}

// name tells the cell from others of the same demand.
func (c *cell) name() string { return strings.Join(c.names, "\x00") }

// compareNames orders by the first node there is, then by the values of labels.
func (c *cell) compareNames(o *cell) int {
	if len(c.rows) > 0 && len(o.rows) > 0 {
		return cmp.Compare(c.rows[0], o.rows[0])
	}
	return slices.Compare(c.names, o.names)
}

// together is what it costs to have all of so many pods in the cell: pods that
// find no place there count for more than any price, and light pools for more
// than dear nodes.
func (c *cell) together(pods int) (homeless, tier int, price float64) {
	buy := max(pods-c.room, 0)
	if buy == 0 {
		return 0, 0, 0
	}
	if c.tier == noTier {
		return buy, 0, 0
	}
	return max(buy-c.most, 0), c.tier, float64(min(buy, c.most)) * c.price
}
