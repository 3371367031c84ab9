// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"maps"
	"math"
	"slices"
	"sort"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// piece is pods of a demand that the proof values by themselves: all, or those in one
// topology domain.
type piece struct {
	demand         // with as many pods left as may be there
	source *demand // of the plan: its price is where the proof begins, if it is known
	span
	worth  float64 // of one pod; infinite = nothing is known that takes it
	likely float64 // how many pods of it values are found for
}

func (p *piece) lower(worth float64) { p.worth = min(p.worth, worth) }

// division is the pieces of a demand.
type division struct {
	pieces []*piece
	pods   int
	key    int // by whose domains they are told apart
	others int // pods that nodes there are take which are in none of these domains
}

// likely returns how many pods the piece has if the others have as many of those they may
// have as it has.
func (all *division) likely(p *piece) float64 {
	left, room := all.pods, 0
	for _, o := range all.pieces {
		left, room = left-o.low, room+o.high-o.low
	}
	return float64(p.low) + float64(p.high-p.low)*float64(left)/float64(max(room, 1))
}

// in returns the position of the piece of a node at the place: the number of pieces for
// those in none of the domains.
func (all *division) in(p topology.Place, st *topology.State) int {
	if len(all.pieces) == 1 {
		return 0
	}
	i := slices.IndexFunc(all.pieces, func(o *piece) bool { return len(p[all.key]) == 1 && st.Value(all.key, p[all.key][0]) == o.domain })
	if i < 0 {
		return len(all.pieces)
	}
	return i
}

// mostPieces bounds the topology domains in which the proof values pods of a demand by
// themselves.
const mostPieces = 8

// loose reports whether the plan may break rules on the hostname that the planner keeps
// while it launches nodes, so that the proof must not count on them.
func loose(x *draft) bool { return x.final || x.topology.Mixed() }

// divider finds the pieces of a plan's demands.
type divider struct {
	*draft
	plans  []*ledger // that keep the rules which the pieces follow
	priced map[areaKey]pricedAreas
}

// areaKey is a demand and the key by whose domains areas are told apart.
type areaKey struct {
	of  *demand
	key int
}

// pricedAreas are the areas in which nodes can be launched for a demand, and what the
// cheapest in each costs.
type pricedAreas struct {
	areas  []area
	prices []float64
}

func newDivider(x, planned *draft) *divider {
	return &divider{x, []*ledger{newLedger(x), newLedger(planned)}, map[areaKey]pricedAreas{}}
}

// allKeep reports whether all plans have so many pods of d, and as many in each domain as
// the spans say.
func (x *divider) allKeep(d *demand, key, pods int, spans []span) bool {
	return !slices.ContainsFunc(x.plans, func(l *ledger) bool { return !l.keeps(d, key, pods, spans) })
}

// divide returns the pieces of the demands that nodes are, or could be, launched for. Spread
// counts only where all of the plans keep it.
// The map has the number of pods of each demand that nodes are launched for. The draft
// returned has a demand for each piece.
func (x *divider) divide(bought map[*demand]int) (*draft, map[*demand]*division) {
	fresh, loose := *x.draft, loose(x.draft)
	fresh.limits, fresh.demands = newLimits(x.catalogue), nil
	for _, d := range x.demands {
		fresh.demands = append(fresh.demands, new(d.clone()))
	}
	type position struct {
		at int
		span
	}
	of, out := map[*demand][]position{}, map[*demand]*division{}
	counts := x.countsAtStart()
	tied := map[*demand]bool{} // nodes were launched for parts of these
	type part struct {
		whole  *demand
		region string
	}
	parts := map[part]int{} // the first of each that may go wherever pods of the whole may
	for i := len(x.demands) - 1; i >= 0; i-- {
		d := x.demands[i]
		tied[d.whole] = true
		if d.whole != nil && d.bundle == nil && x.avoids(d.Shape) == x.avoids(d.whole.Shape) {
			parts[part{d.whole, d.area.text()}] = i
		}
	}
	for i, d := range x.demands {
		n := d.loose - len(d.left) // another plan may launch nodes for pods that have room here
		if d.whole != nil || n <= 0 || bought[d] == 0 && len(x.startNodes) == 0 {
			continue
		}
		all := &division{pods: n}
		out[d] = all
		areas, spans := x.spansOf(d, all, counts)
		if len(areas) == 0 {
			of[d] = []position{{i, span{low: n, high: n}}}
			continue
		}
		for j, a := range areas {
			at, known := parts[part{d, a.text()}]
			if !known {
				at = len(fresh.demands)
				fresh.demands = append(fresh.demands, x.partOf(d, a, nil))
			}
			of[d] = append(of[d], position{at, spans[j]})
		}
	}
	fresh.takeSurvey()
	if loose {
		fresh.groups = nil
	}
	for _, d := range x.demands {
		for _, p := range of[d] {
			f := &piece{demand: *fresh.demands[p.at], span: p.span, worth: math.Inf(1)}
			f.left = d.Pods[:p.high]
			if !loose && p.at < len(x.demands) && !tied[x.demands[p.at]] {
				f.source = x.demands[p.at]
			}
			if len(d.Shape.HostPorts) > 0 { // a node that is settled for some domain may have no daemon that takes them
				f.Demand = x.spanning(x.catalogue.NewDemand(model.Pending{Shape: d.Shape, Pods: d.Pods}))
				f.class = fresh.classOf(&f.demand)
			}
			if loose {
				f.apart, f.most = nil, x.never(d)
			}
			out[d].pieces = append(out[d].pieces, f)
		}
	}
	return &fresh, out
}

// countsAtStart returns how pods are counted before any is planned: without those that an
// earlier plan put where they stay, and with them.
func (x *draft) countsAtStart() [2]*topology.State {
	before := topology.New(x.snapshot, x.wishes, &x.memory.rules)
	kept := x.keptStill()
	if len(kept) == 0 {
		return [2]*topology.State{before, before}
	}
	with := topology.New(x.snapshot, x.wishes, &x.memory.rules)
	for _, p := range kept {
		with.Add(p.kind, with.At(p.site), p.site, 1)
	}
	return [2]*topology.State{before, with}
}

// spansOf returns the areas over which a spread constraint of d has its pods balanced in
// every plan, and how many of them are in each; none if that is not certain, or they are
// too many. Of several constraints it is the one for which nodes cost most.
func (x *divider) spansOf(d *demand, all *division, counts [2]*topology.State) (areas []area, spans []span) {
	if !x.open(d) {
		return nil, nil
	}
	most := -1.0
	for i, rule := range counts[0].Balances(d.kind) {
		in := x.areasFor(d, rule.Key)
		some := in.areas
		if len(some) < 2 || len(some) > mostPieces {
			continue
		}
		others := x.roomBeyond(d, rule.Key, some, all.pods)
		start, with := make([]count, len(some)), counts[1].Balances(d.kind)[i]
		for j, a := range some {
			value := x.topology.Value(rule.Key, a.place[rule.Key][0])
			start[j].least, _ = rule.Counts(counts[0].Domain(rule.Key, value))
			_, start[j].most = with.Counts(counts[1].Domain(rule.Key, value))
		}
		tried, cost := balanced(all.pods, others, start, rule.MaxSkew), 0.0
		for j := range tried {
			tried[j].domain = x.topology.Value(rule.Key, some[j].place[rule.Key][0])
			if tried[j].low > 0 {
				cost += in.prices[j]
			}
		}
		if cost > most && x.allKeep(d, rule.Key, all.pods, tried) {
			areas, spans, most, all.key, all.others = some, tried, cost, rule.Key, others
		}
	}
	return areas, spans
}

// areasFor returns where nodes can be launched for d, told apart by the key; nowhere if some
// offer or node does not tell its domain.
func (x *divider) areasFor(d *demand, key int) pricedAreas {
	of := areaKey{d, key}
	out, known := x.priced[of]
	if !known {
		out.areas, out.prices = x.findAreas(d, key)
		x.priced[of] = out
	}
	return out
}

func (x *divider) findAreas(d *demand, key int) (areas []area, prices []float64) {
	openings, ok := x.openings(d, key)
	if !ok || slices.ContainsFunc(x.startNodes, func(n fit.NodeRow) bool { return len(x.topology.At(n.Site)[key]) > 1 }) {
		return nil, nil
	}
	alternatives, of := d.Shape.Alternatives(), x.catalogue.Spelling(x.topology.Keys[key]).Of
	for _, a := range x.atlas.areas([]int{key}) {
		price := math.Inf(1)
		for o := range a.offers.All() {
			if opening, ok := openings[of[o]]; ok {
				price = min(price, float64(opening))
			}
		}
		if len(a.place[key]) == 1 && !math.IsInf(price, 1) && slices.ContainsFunc(alternatives, a.suits) {
			areas, prices = append(areas, a), append(prices, price)
		}
	}
	return areas, prices
}

// roomBeyond returns how many of so many pods of d have room on nodes there are in none of
// the areas.
func (x *divider) roomBeyond(d *demand, key int, areas []area, pods int) int {
	out := 0
	for i := range x.startNodes {
		n := &x.startNodes[i]
		in := func(a area) bool { return slices.Equal(a.place[key], x.topology.At(n.Site)[key]) }
		if out < pods && n.Takes(d.Shape) && !slices.ContainsFunc(areas, in) {
			out += fit.Room(n.Free, d.Shape.Requests, pods-out)
		}
	}
	return out
}

// open reports whether pods of d can be in every domain that nodes can be launched in for
// them: no limit, reservation or soft taint may close one.
func (x *divider) open(d *demand) bool {
	learned := func(l lesson) bool { return l.kind == d.kind }
	return len(d.Shape.HostPorts) == 0 && !x.avoids(d.Shape) &&
		!x.demanding(fit.Range{To: len(x.catalogue.Pools)}) && len(x.catalogue.Reservations()) == 0 &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(x.known.most)), learned) &&
		!slices.ContainsFunc(x.catalogue.Pools, func(p fit.Pool) bool { return len(p.Limits) > 0 })
}

// openings returns what the cheapest new node for a pod of d costs in each domain of the
// key in which one can be launched; false if some offer does not tell its domain.
func (x *divider) openings(d *demand, key int) (map[int32]model.Price, bool) {
	offers := d.Offers
	for _, k := range x.topology.Pinned(d.kind) {
		s := x.catalogue.Spelling(x.topology.Keys[k])
		if offers.OverlapsBits(s.Open) {
			return nil, false
		}
		offers = offers.Less(s.Absent)
	}
	of := x.catalogue.Spelling(x.topology.Keys[key]).Of
	out := map[int32]model.Price{}
	for t := range x.catalogue.Types {
		row := &x.catalogue.Types[t]
		if !offers.Any(row.Offers) || !d.Shape.Requests.Fits(row.Free) {
			continue
		}
		for o := range offers.In(row.Offers) {
			price := x.catalogue.Offers[o].Price
			if known, ok := out[of[o]]; !ok || price < known {
				out[of[o]] = price
			}
		}
	}
	return out, true
}

// opened returns what all plans pay at least for as many domains as the pods of some
// demand must be in, as they are spread: a node in each. With nodes there are, it is nothing.
func (x *divider) opened() float64 {
	highest := 0.0
	if len(x.snapshot.Nodes) > 0 {
		return 0
	}
	for _, d := range x.demands {
		pods := d.loose - len(d.left)
		if d.whole != nil || pods <= 0 || !x.open(d) {
			continue
		}
		for _, rule := range x.topology.Balances(d.kind) {
			in := x.areasFor(d, rule.Key)
			areas, prices := in.areas, slices.Clone(in.prices)
			spans, sum := balanced(pods, 0, make([]count, len(areas)), rule.MaxSkew), 0.0
			for i := range spans {
				spans[i].domain = x.topology.Value(rule.Key, areas[i].place[rule.Key][0])
			}
			if len(areas) == 0 || !x.allKeep(d, rule.Key, pods, spans) {
				continue
			}
			most := spans[0].high
			slices.Sort(prices)
			for _, price := range prices[:min((pods+most-1)/most, len(prices))] {
				sum += price
			}
			highest = max(highest, sum)
		}
	}
	return highest
}

// count is how many pods are in a domain before a plan adds any, at least and at most.
type count struct{ least, most int }

// balanced returns how many of the pods are added to each domain at least and at most, if
// none that gets any has maxSkew more than another then, and at most so many are in no
// domain.
func balanced(pods, others int, start []count, maxSkew int) []span {
	out, sum := make([]span, len(start)), others
	for i := range out {
		out[i].high = sort.Search(pods, func(n int) bool { // of more than n, the others need too many
			needed := n + 1
			for j, o := range start {
				if j != i {
					needed += max(start[i].least+n+1-maxSkew-o.most, 0)
				}
			}
			return needed > pods
		})
		sum += out[i].high
	}
	for i := range out {
		out[i].low = max(pods-(sum-out[i].high), 0)
	}
	return out
}

// never returns how many pods of d share a new node at most in any plan: 1 when
// they keep from each other; 0 = any number.
func (x *draft) never(d *demand) int {
	if len(d.Shape.HostPorts) > 0 || x.topology.Excludes(d.kind, d.kind) {
		return 1
	}
	return 0
}
