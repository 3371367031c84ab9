// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// piece is pods of a demand that the proof values by themselves: all, or those in one
// topology domain.
type piece struct {
	demand         // with as many pods left as may be there
	source *demand // of the plan: its price is where the proof begins, if it is known
	least  int     // pods that every plan has there
	worth  float64 // of one pod; infinite = nothing is known that takes it
}

func (p *piece) lower(worth float64) { p.worth = min(p.worth, worth) }

// division is the pieces of a demand.
type division struct {
	pieces []*piece
	pods   int
}

// mostPieces bounds the topology domains in which the proof values pods of a demand by
// themselves.
const mostPieces = 8

// loose reports whether the plan may break rules that the planner keeps while it launches
// nodes, so that the proof must not count on them. With nodes there are, it counts on none
// either: that proves more.
func loose(x *draft) bool {
	return x.final || x.topology.Mixed() || x.stricter() && len(x.startNodes) > 0
}

// divide returns the pieces of the demands that nodes are, or could be, launched for.
// The map has the number of pods of each demand that nodes are launched for. The draft
// returned has a demand for each piece.
func divide(x *draft, bought map[*demand]int) (*draft, map[*demand]division) {
	fresh, loose := *x, loose(x)
	fresh.limits, fresh.demands = newLimits(x.catalogue), nil
	for _, d := range x.demands {
		fresh.demands = append(fresh.demands, new(d.clone()))
	}
	type position struct{ at, least, most, pods int }
	of := map[*demand][]position{}
	tied := map[*demand]bool{} // nodes were launched for parts of these
	for _, d := range x.demands {
		tied[d.whole] = true
	}
	for i, d := range x.demands {
		n := max(bought[d], d.loose-len(d.left)) // another plan may launch nodes for pods that have room here
		if d.whole != nil || bought[d] == 0 && (len(x.startNodes) == 0 || d.loose == len(d.left)) {
			continue
		}
		areas, skew := x.balancedOver(d)
		if loose || len(areas) == 0 {
			of[d] = []position{{i, n, n, n}}
			continue
		}
		least, most := balanced(n, len(areas), skew)
		for _, a := range areas {
			at := slices.IndexFunc(x.demands, func(o *demand) bool { return o.whole == d && o.bundle == nil && o.area.id == a.id })
			if at < 0 {
				at = len(fresh.demands)
				fresh.demands = append(fresh.demands, x.partOf(d, a, nil))
			}
			of[d] = append(of[d], position{at, least, most, n})
		}
	}
	fresh.takeSurvey()
	if loose {
		fresh.groups = nil
	}
	out := map[*demand]division{}
	for d, some := range of {
		for _, p := range some {
			f := &piece{demand: *fresh.demands[p.at], least: p.least, worth: math.Inf(1)}
			f.left = d.Pods[:p.most]
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
			out[d] = division{append(out[d].pieces, f), p.pods}
		}
	}
	return &fresh, out
}

// balancedOver returns the areas over which a spread constraint of d has its pods
// balanced in every plan, and its maxSkew; none if that is not certain, or they are too
// many, or rules on several keys tie d.
func (x *draft) balancedOver(d *demand) ([]area, int) {
	rules := x.topology.Balances(d.kind)
	if len(rules) == 0 || len(x.topology.Pinned(d.kind)) > 1 || !x.open(d) {
		return nil, 0
	}
	key := rules[0].Key
	if _, ok := x.openings(d, key); !ok {
		return nil, 0
	}
	alternatives := d.Shape.Alternatives()
	out := slices.DeleteFunc(slices.Clone(x.atlas.areas([]int{key})), func(a area) bool {
		return len(a.place[key]) != 1 || !slices.ContainsFunc(alternatives, a.suits) || !slices.ContainsFunc(a.offers, func(o int) bool { return x.takes(o, d) })
	})
	if len(out) < 2 || len(out) > mostPieces {
		return nil, 0
	}
	return out, rules[0].MaxSkew
}

// open reports whether pods of d can be in every domain that nodes can be launched in for
// them: no limit, reservation, existing node or soft taint may close one.
func (x *draft) open(d *demand) bool {
	learned := func(l lesson) bool { return l.kind == d.kind }
	return len(x.snapshot.Nodes) == 0 && len(d.left)+len(d.stuck) == 0 && len(d.Shape.HostPorts) == 0 && !x.avoids(d.Shape) &&
		!x.demanding(fit.Range{To: len(x.catalogue.Pools)}) && len(x.catalogue.Reservations()) == 0 &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(x.known.most)), learned) &&
		!slices.ContainsFunc(x.catalogue.Pools, func(p fit.Pool) bool { return len(p.Limits) > 0 })
}

// takes reports whether a new node from the offer takes a pod of d.
func (x *draft) takes(offer int, d *demand) bool {
	return d.Offers.Has(offer) && d.Shape.Requests.Fits(x.catalogue.Types[x.catalogue.Offers[offer].Type].Free)
}

// openings returns what the cheapest new node for a pod of d costs in each domain of the
// key in which one can be launched; false if some offer does not tell its domain.
func (x *draft) openings(d *demand, key int) (map[int32]model.Price, bool) {
	var spelled []*fit.Spelling
	for _, k := range x.topology.Pinned(d.kind) {
		spelled = append(spelled, x.catalogue.Spelling(x.topology.Keys[k]))
	}
	of := x.catalogue.Spelling(x.topology.Keys[key]).Of
	out := map[int32]model.Price{}
	for o := range d.Offers.All() {
		if slices.ContainsFunc(spelled, func(s *fit.Spelling) bool { return unsettled(s, o) }) {
			return nil, false
		}
		if !x.takes(o, d) || slices.ContainsFunc(spelled, func(s *fit.Spelling) bool { return s.Of[o] < 0 }) {
			continue
		}
		price := x.catalogue.Offers[o].Price
		if known, ok := out[of[o]]; ok {
			price = min(price, known)
		}
		out[of[o]] = price
	}
	return out, true
}

// unsettled reports whether the offer has one of several values of the label.
func unsettled(s *fit.Spelling, offer int) bool {
	i := s.Of[offer]
	return i >= 0 && (s.Labels[i].Complement || len(s.Labels[i].Values) > 1)
}

// opened returns what all plans pay at least for as many domains as the pods of some
// demand must be in, as they are spread: a node in each.
func (x *draft) opened() float64 {
	highest := 0.0
	for _, d := range x.demands {
		if d.whole != nil || !x.open(d) {
			continue
		}
		for _, rule := range x.topology.Balances(d.kind) {
			domains, ok := x.openings(d, rule.Key)
			_, most := balanced(len(d.Pods), len(domains), rule.MaxSkew)
			if !ok || most == 0 {
				continue
			}
			prices, sum := slices.Sorted(maps.Values(domains)), 0.0
			for _, price := range prices[:min((len(d.Pods)+most-1)/most, len(prices))] {
				sum += float64(price)
			}
			highest = max(highest, sum)
		}
	}
	return highest
}

// balanced returns how many of the pods are in each domain at least and at most, if there
// are nowhere more than maxSkew more than elsewhere.
func balanced(pods, domains, maxSkew int) (least, most int) {
	if domains == 0 {
		return 0, 0
	}
	most = min((pods+(domains-1)*maxSkew)/domains, pods)
	return max(pods-(domains-1)*most, 0), most
}

// cheapest returns what a pod is worth on average where the pods are worth least: in
// each piece as many as are in every plan, and the others in those that are worth least.
func (all division) cheapest() float64 {
	sorted := slices.SortedFunc(slices.Values(all.pieces), func(a, b *piece) int { return cmp.Compare(a.worth, b.worth) })
	others := all.pods
	for _, p := range sorted {
		others -= p.least
	}
	sum := 0.0
	for _, p := range sorted {
		n := min(len(p.left)-p.least, others)
		if others -= n; p.least+n > 0 {
			sum += p.worth * float64(p.least+n)
		}
	}
	if all.pods == 0 || math.IsInf(sum, 1) {
		return 0
	}
	return sum / float64(all.pods)
}

// never returns how many pods of d share a new node at most in any plan: 1 when
// they keep from each other; 0 = any number.
func (x *draft) never(d *demand) int {
	if len(d.Shape.HostPorts) > 0 || x.topology.Excludes(d.kind, d.kind) {
		return 1
	}
	return 0
}
