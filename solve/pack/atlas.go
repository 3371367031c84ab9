// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// mostPlaces bounds how many combinations of values of open labels are told
// apart. More domains than these are of no use to any number of pods that is
// planned for at once, and looking at all of them is not bounded by anything.
const mostPlaces = 1024

// stepsPerLabel is what it takes to tell offers apart by a label, for each offer.
const stepsPerLabel = 8

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
	all := t.regionsOf(keys)
	out := make([]area, len(all))
	for _, r := range all {
		p := make(topology.Place, len(t.topology.Keys))
		for i, key := range keys {
			if r.settled[i] {
				p[key] = []int{t.topology.Domain(key, r.names[i])}
			}
		}
		out[r.rank] = area{id: placeID(p, keys), place: p, pins: r.pins, names: r.names, offers: r.offers}
	}
	t.known[name] = out
	return out
}

// regionsOf returns the regions that the keys tell apart, in the order in which
// offers have them.
func (t *atlas) regionsOf(keys []int) []region {
	labels := make([]string, len(keys))
	for i, key := range keys {
		labels[i] = t.topology.Keys[key]
	}
	name := strings.Join(labels, "\x00")
	if out, ok := t.regions[name]; ok {
		return out
	}
	t.budget.Spend(stepsPerLabel * len(labels) * len(t.catalogue.Offers))
	var out []region
	index := map[string]int{}
	for _, offers := range t.catalogue.Alike(t.labels(keys)) {
		for _, r := range t.regionsAt(offers[0], labels) {
			id := fmt.Sprintf("%q %v %v", r.names, r.settled, r.open)
			i, known := index[id]
			if !known {
				index[id] = len(out)
				r.pins, r.offers = r.pinned(labels), offers
				out = append(out, r)
				continue
			}
			out[i].offers = slices.Concat(out[i].offers, offers)
			slices.Sort(out[i].offers)
		}
	}
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(out[a].names, out[b].names) })
	for rank, i := range order {
		out[i].rank = rank
	}
	t.regions[name] = out
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

// regionsAt returns where a node bought from the offer may be, as far as the
// labels tell.
func (t *atlas) regionsAt(offer int, labels []string) []region {
	out := []region{{names: make([]string, len(labels)), settled: make([]bool, len(labels)), open: make([]bool, len(labels))}}
	most := int(math.Pow(mostPlaces, 1/float64(len(labels))))
	for i, name := range labels {
		label, ok := t.catalogue.Label(offer, name)
		if !ok {
			continue
		}
		values := t.openValues(name, label, most)
		if len(values) == 0 && label.Complement { // nobody can tell the values it may have
			for _, r := range out {
				r.open[i] = true
			}
			continue
		}
		var more []region
		for _, r := range out {
			for _, v := range values {
				q := region{names: slices.Clone(r.names), settled: slices.Clone(r.settled), open: r.open}
				q.names[i], q.settled[i] = v, true
				more = append(more, q)
			}
		}
		out = more
	}
	return out
}

// openValues returns the values of a key that a label allows, at most so many: those
// that nodes or pods name come first.
func (t *atlas) openValues(key string, label model.Requirement, most int) []string {
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
func (t *atlas) mentioned(key string, pools bool) []string {
	var out []string
	add := func(rs model.Requirements) {
		if r, ok := rs.Get(key); ok && !r.Complement {
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
