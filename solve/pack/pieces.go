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

// divide returns the pieces of the demands that nodes are, or could be, launched for.
// The map has the number of pods of each demand that nodes are launched for. The draft
// returned has a demand for each piece.
func divide(x *draft, bought map[*demand]int) (*draft, map[*demand]division) {
	fresh, loose := *x, x.final || x.topology.Mixed() || x.stricter() && len(x.startNodes) > 0
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
		// In every domain are at most maxSkew more pods than in any other.
		most := (n + (len(areas)-1)*skew) / len(areas)
		least := max(n-(len(areas)-1)*most, 0)
		for _, a := range areas {
			at := slices.IndexFunc(x.demands, func(o *demand) bool { return o.whole == d && o.bundle == nil && o.area.id == a.id })
			if at < 0 {
				at = len(fresh.demands)
				fresh.demands = append(fresh.demands, x.partOf(d, a, nil))
			}
			of[d] = append(of[d], position{at, least, min(most, n), n})
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
// many: where limits, reservations, existing nodes or soft taints may close a domain.
func (x *draft) balancedOver(d *demand) ([]area, int) {
	key, skew, ok := x.topology.Balance(d.kind)
	pools := fit.Range{To: len(x.catalogue.Pools)}
	learned := func(l lesson) bool { return l.kind == d.kind }
	if !ok || len(x.snapshot.Nodes) > 0 || len(d.left)+len(d.stuck) > 0 || len(d.Shape.HostPorts) > 0 || x.avoids(d.Shape) ||
		x.demanding(pools) || len(x.catalogue.Reservations()) > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(x.known.most)), learned) ||
		slices.ContainsFunc(x.catalogue.Pools, func(p fit.Pool) bool { return len(p.Limits) > 0 }) {
		return nil, 0
	}
	spelled := x.catalogue.Spelling(x.topology.Keys[key])
	for o := range d.Offers.All() {
		if i := spelled.Of[o]; i >= 0 && (spelled.Labels[i].Complement || len(spelled.Labels[i].Values) > 1) {
			return nil, 0
		}
	}
	alternatives := d.Shape.Alternatives()
	out := slices.DeleteFunc(slices.Clone(x.atlas.areas([]int{key})), func(a area) bool {
		return len(a.place[key]) != 1 || !slices.ContainsFunc(alternatives, a.suits) || !slices.ContainsFunc(a.offers, func(o int) bool {
			return d.Offers.Has(o) && d.Shape.Requests.Fits(x.catalogue.Types[x.catalogue.Offers[o].Type].Free)
		})
	})
	if len(out) < 2 || len(out) > mostPieces {
		return nil, 0
	}
	return out, skew
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
