// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
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

// Bounds of how many regions there are.
const (
	mostRegions = 1 << 15 // that are remembered, and areas; about as many one list of keys tells apart
	mostSets    = 1 << 13 // sets of offers that one list of keys tells apart
)

// What it takes to tell offers apart by a label, in steps.
const (
	stepsPerLabel  = 8   // for each offer
	stepsPerRegion = 128 // for each region that results
	stepsToPlace   = 64  // for each of them as an area
)

// atlas knows the places that nodes can be launched in.
type atlas struct {
	*problem
	topology   *topology.State
	known      map[string][]area // what areas returned, by the keys asked for
	areasKnown int
}

// areas returns the places nodes can be launched in, told apart by the keys of
// these numbers only, ordered by the values of their labels.
func (t *atlas) areas(keys []int) []area {
	name := placeID(nil, keys)
	if out, ok := t.known[name]; ok {
		return out
	}
	all := t.regionsOf(keys)
	t.budget.Spend(stepsToPlace * len(all))
	out := make([]area, len(all))
	for i := range all {
		out[all[i].rank] = t.area(all[i], keys)
	}
	if t.areasKnown += len(out); t.areasKnown > mostRegions {
		clear(t.known)
		t.areasKnown = len(out)
	}
	t.known[name] = out
	return out
}

// areasAt returns those of the areas in which a node launched from the offer may be,
// without what else can be launched there.
func (t *atlas) areasAt(offer int, keys []int) []area {
	labels := t.keyNames(keys)
	var out []area
	for _, r := range t.regionsAt(offer, labels, mostPlaces) {
		out = append(out, t.area(r, keys))
	}
	return out
}

// area returns the region as an area.
func (t *atlas) area(r *region, keys []int) area {
	p, domains := make(topology.Place, len(t.topology.Keys)), make([]int, len(keys))
	for i, key := range keys {
		if r.states[i] == labelSettled {
			domains[i] = t.topology.Domain(key, r.names[i])
			p[key] = domains[i : i+1 : i+1]
		}
	}
	return area{region: r, id: placeID(p, keys), place: p}
}

// keyNames returns the names of the keys.
func (t *atlas) keyNames(keys []int) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = t.topology.Keys[key]
	}
	return out
}

// regionsOf returns the regions that the keys tell apart, in the order in which
// offers have them.
func (t *atlas) regionsOf(keys []int) []*region {
	labels := t.keyNames(keys)
	name := strings.Join(labels, "\x00")
	if out, ok := t.regions[name]; ok {
		return out
	}
	t.budget.Spend(stepsPerLabel * len(labels) * len(t.catalogue.Offers))
	alike := t.catalogue.Alike(t.labels(keys))
	if len(alike) > mostSets {
		alike = t.cheapest(alike, t.labels(keys))
	}
	out, parts := make([]*region, 0, len(alike)), make([][][]int32, 0, len(alike)) // of the offers of each
	index, apart := map[string]int{}, t.tellOffersApart(labels)
	most := min(mostPlaces, mostRegions/max(len(alike), 1))
	for n := range alike {
		for _, r := range t.regionsAt(int(alike[n][0]), labels, most) {
			if !apart {
				id := r.id()
				if i, known := index[id]; known {
					parts[i] = append(parts[i], alike[n])
					continue
				}
				index[id] = len(out)
			}
			out, parts = append(out, r), append(parts, alike[n:n+1:n+1])
		}
	}
	for i := range out {
		out[i].offers = fit.SetOf(len(t.catalogue.Offers), parts[i]...)
	}
	t.budget.Spend(stepsPerRegion * len(labels) * len(out))
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(slices.Compare(out[a].names, out[b].names), cmp.Compare(a, b)) })
	for rank, i := range order {
		out[i].rank = rank
	}
	if t.regionsKnown += len(out); t.regionsKnown > mostRegions {
		clear(t.regions)
		t.regionsKnown = len(out)
	}
	t.regions[name] = out
	return out
}

// tellOffersApart reports whether offers that differ in one of the labels are never in one
// region: each has a single value of each, or none.
func (t *atlas) tellOffersApart(labels []string) bool {
	return !slices.ContainsFunc(labels, func(name string) bool {
		return slices.ContainsFunc(t.catalogue.Spelling(name).Labels, func(r model.Requirement) bool { return r.Complement || len(r.Values) != 1 })
	})
}

// cheapest returns the cheapest of the sets of offers, and for each value of a label
// the cheapest that has it: more are told apart only by many keys together.
func (t *atlas) cheapest(alike [][]int32, labels []string) [][]int32 {
	spelled, seen := make([]*fit.Spelling, len(labels)), make([][]bool, len(labels)) // by label; the first value seen is none
	for k, name := range labels {
		spelled[k] = t.catalogue.Spelling(name)
		seen[k] = make([]bool, len(spelled[k].Labels)+1)
	}
	price := make([]model.Price, len(alike))
	order := make([]int, len(alike))
	for i, offers := range alike {
		order[i], price[i] = i, math.MaxInt64
		for _, o := range offers {
			price[i] = min(price[i], t.catalogue.Offers[o].Price)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(price[a], price[b]), cmp.Compare(a, b)) })
	chosen := order[:mostSets:mostSets]
	for n, i := range order {
		for k, s := range spelled {
			of := s.Of[alike[i][0]] + 1
			if !seen[k][of] && n >= mostSets && chosen[len(chosen)-1] != i {
				chosen = append(chosen, i)
			}
			seen[k][of] = true
		}
	}
	slices.Sort(chosen) // in the order in which offers have them
	out := make([][]int32, len(chosen))
	for n, i := range chosen {
		out[n] = alike[i]
	}
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

// regionsAt returns where a node launched from the offer may be, as far as the
// labels tell: at most so many regions.
func (t *atlas) regionsAt(offer int, labels []string, places int) []*region {
	out := []*region{{labels: labels, names: make([]string, len(labels)), states: make([]labelState, len(labels))}}
	most := max(int(math.Pow(float64(places), 1/float64(len(labels)))), 1)
	for i, name := range labels {
		spelled := t.catalogue.Spelling(name)
		of := spelled.Of[offer]
		if of < 0 {
			continue
		}
		label := &spelled.Labels[of]
		values := t.openValues(name, label, most)
		if len(values) == 0 && label.Complement { // no one can tell the values it may have
			for _, r := range out {
				r.states[i] = labelOpen
			}
			continue
		}
		if len(values) == 1 {
			for _, r := range out {
				r.names[i], r.states[i] = values[0], labelSettled
			}
			continue
		}
		var more []*region
		for _, r := range out {
			for _, v := range values {
				q := &region{labels: labels, names: slices.Clone(r.names), states: slices.Clone(r.states)}
				q.names[i], q.states[i] = v, labelSettled
				more = append(more, q)
			}
		}
		out = more
	}
	return out
}

// openValues returns the values of a key that a label allows, at most so many: those
// that nodes or pods name come first.
func (t *atlas) openValues(key string, label *model.Requirement, most int) []string {
	if !label.Complement && len(label.Values) <= most {
		return label.Values
	}
	values := slices.DeleteFunc(t.mentioned(key, label.Complement), func(v string) bool { return !label.Has(v) })
	if n, ok := t.invented(*label); ok && !slices.Contains(values, n) {
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
	if t.mentions == nil {
		t.mentions = t.allMentioned()
	}
	out := slices.Clone(t.mentions[key])
	for i := range t.snapshot.Pools {
		if r, ok := t.snapshot.Pools[i].Requirements.Get(key); pools && ok && !r.Complement {
			out = append(out, r.Values...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allMentioned returns the values that nodes or pods name of every key.
func (t *atlas) allMentioned() map[string][]string {
	out := map[string][]string{}
	add := func(rs model.Requirements) {
		for i := range rs {
			if r := &rs[i]; !r.Complement {
				out[r.Key] = append(out[r.Key], r.Values...)
			}
		}
	}
	for i := range t.snapshot.Nodes {
		add(t.snapshot.Nodes[i].Labels)
	}
	for i := range t.snapshot.Pending {
		for _, alt := range t.snapshot.Pending[i].Shape.Alternatives() {
			add(alt)
		}
	}
	for key, values := range out {
		slices.Sort(values)
		out[key] = slices.Compact(values)
	}
	return out
}

// domains returns how many domains of a key new nodes may be in.
func (t *atlas) domains(key string) int {
	labels, open := t.catalogue.Spelling(key).Labels, 0
	if slices.ContainsFunc(labels, func(r model.Requirement) bool { return r.Complement || len(r.Values) > 1 }) {
		open = min(len(t.mentioned(key, true)), mostPlaces)
	}
	return len(labels) + open
}

// nearby returns the places where other pods may be given nodes that count for
// spread constraints of pods of this kind and shape.
func (t *atlas) nearby(kind int, shape *model.Shape) []topology.Place {
	return t.near(kind, shape, func(p *fit.Pool) fit.OfferSet { return p.Allowed })
}

// available returns those of the places nearby where nodes can be launched now.
func (t *atlas) available(kind int, shape *model.Shape) []topology.Place {
	return t.near(kind, shape, func(p *fit.Pool) fit.OfferSet { return p.Usable })
}

// near is nearby with these offers of each pool.
func (t *atlas) near(kind int, shape *model.Shape, of func(*fit.Pool) fit.OfferSet) []topology.Place {
	usable := fit.NewBits(len(t.catalogue.Offers))
	for i := range t.catalogue.Pools {
		of(&t.catalogue.Pools[i]).AddTo(usable)
	}
	if !slices.ContainsFunc(shape.Spread, func(s model.Spread) bool { return s.AnyNode }) {
		usable = usable.And(t.catalogue.Any(shape.Chosen()))
	}
	var out []topology.Place
	for _, a := range t.areas(t.topology.Pinned(kind)) {
		if a.offers.OverlapsBits(usable) {
			out = append(out, a.place)
		}
	}
	return out
}
