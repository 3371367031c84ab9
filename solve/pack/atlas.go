// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// mostPlaces bounds how many combinations of values of open labels are told
// apart. More domains than these are of no use to any number of pods that is
// planned for at once, and looking at all of them is not bounded by anything.
const mostPlaces = 1024

// atlas knows the places that nodes can be bought in.
type atlas struct {
	*problem
	topology *topology.State
	known    map[string][]area // what areas returned, by the keys asked for
}

// areas returns the places nodes can be bought in, told apart by the keys of
// these numbers only, ordered by the values of their labels.
func (t *atlas) areas(keys []int) []area {
	name := placeID(nil, keys)
	if out, ok := t.known[name]; ok {
		return out
	}
	index := map[string]int{}
	var out []area
	for _, offers := range t.catalogue.Alike(t.labels(keys)) {
		for _, p := range t.placesOf(offers[0], keys) {
			open := t.openAt(offers[0], p, keys)
			id := placeID(p, keys)
			name := id + placeID(nil, open)
			i, ok := index[name]
			if !ok {
				index[name] = len(out)
				out = append(out, t.newArea(id, p, keys, open))
				out[len(out)-1].offers = offers
				continue
			}
			out[i].offers = slices.Concat(out[i].offers, offers)
			slices.Sort(out[i].offers)
		}
	}
	slices.SortFunc(out, func(a, b area) int { return slices.Compare(a.names, b.names) })
	t.known[name] = out
	return out
}

// labels returns the names of those of the keys that tell offers apart.
func (t *atlas) labels(keys []int) []string {
	var out []string
	for _, key := range keys {
		if name := t.topology.Keys[key]; t.catalogue.Defines(name) {
			out = append(out, name)
		}
	}
	return out
}

// placesOf returns where a node bought from the offer may be.
func (t *atlas) placesOf(offer int, keys []int) []topology.Place {
	places := []topology.Place{make(topology.Place, len(t.topology.Keys))}
	most := int(math.Pow(mostPlaces, 1/float64(len(keys))))
	for _, key := range keys {
		label, ok := t.catalogue.Label(offer, t.topology.Keys[key])
		if !ok {
			continue
		}
		values := t.openValues(key, label, most)
		if len(values) == 0 && label.Complement { // nobody can tell the values it may have
			continue
		}
		var more []topology.Place
		for _, p := range places {
			for _, v := range values {
				q := slices.Clone(p)
				q[key] = []int{t.topology.Domain(key, v)}
				more = append(more, q)
			}
		}
		places = more
	}
	return places
}

// openValues returns the values of a key that a label allows, at most so many: those
// that nodes or pods name come first.
func (t *atlas) openValues(key int, label model.Requirement, most int) []string {
	if !label.Complement && len(label.Values) <= most {
		return label.Values
	}
	values := slices.DeleteFunc(t.mentioned(key, label.Complement), func(v string) bool { return !label.Has(v) })
	if n, ok := t.invented(label); ok && !slices.Contains(values, n) {
		values = slices.Insert(values, 0, n)
	}
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
func (t *atlas) mentioned(key int, pools bool) []string {
	name := t.topology.Keys[key]
	var out []string
	add := func(rs model.Requirements) {
		if r, ok := rs.Get(name); ok && !r.Complement {
			out = append(out, r.Values...)
		}
	}
	for i := range t.snapshot.Nodes {
		add(t.snapshot.Nodes[i].Labels)
	}
	for i := range t.snapshot.Pools {
		if pools {
			add(t.snapshot.Pools[i].Requirements)
		}
	}
	for i := range t.snapshot.Pending {
		for _, alt := range t.snapshot.Pending[i].Shape.Alternatives() {
			add(alt)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// openAt returns the keys of which a node bought from the offer has some value that
// the place does not say.
func (t *atlas) openAt(offer int, p topology.Place, keys []int) []int {
	var out []int
	for _, key := range keys {
		if len(p[key]) > 0 {
			continue
		}
		if label, ok := t.catalogue.Label(offer, t.topology.Keys[key]); ok && label.Complement {
			out = append(out, key)
		}
	}
	return out
}

// newArea returns the area of a place. Its nodes have no label for keys that the
// place does not settle, but for those that are open.
func (t *atlas) newArea(id string, p topology.Place, keys, open []int) area {
	a := area{id: id, place: p}
	for _, key := range keys {
		name := t.topology.Keys[key]
		if slices.Contains(open, key) {
			a.names = append(a.names, "")
			continue
		}
		if len(p[key]) == 0 {
			a.pins = a.pins.And(model.NewRequirement(name, model.DoesNotExist))
			a.names = append(a.names, "")
			continue
		}
		value := t.topology.Value(key, p[key][0])
		a.pins = a.pins.And(model.NewRequirement(name, model.In, value))
		a.names = append(a.names, value)
	}
	return a
}

// nearby returns the places where other pods may be bought nodes that count for
// spread constraints of pods of this kind and shape.
func (t *atlas) nearby(kind int, shape *model.Shape) []topology.Place {
	usable := fit.NewBits(len(t.catalogue.Offers))
	for i := range t.catalogue.Pools {
		usable = usable.Or(t.catalogue.Pools[i].Allowed)
	}
	if !slices.ContainsFunc(shape.Spread, func(s model.Spread) bool { return s.AnyNode }) {
		usable = usable.And(t.catalogue.Any(shape.Chosen()))
	}
	var out []topology.Place
	for _, a := range t.areas(t.topology.Pinned(kind)) {
		if slices.ContainsFunc(a.offers, usable.Has) {
			out = append(out, a.place)
		}
	}
	return out
}
