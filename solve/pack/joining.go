// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// reasons is the phase that says why pods stay pending.
type reasons struct{ *draft }

// mostAsked is of how many nodes it is looked at why a pod cannot join others there:
// one reason is told.
const mostAsked = 16

// tryAgain is the hint where nothing is known to be in the way for good.
const tryAgain = "other pods were placed first in this plan; the next plan tries again"

// obstacle is what keeps a pod from a node that it would have to join others on.
type obstacle struct {
	depth depth
	why   string // what is to be said of the node, after "which"
	help  string // the change that would help
}

// depth is how much of what a node must be for a pod it is.
type depth int

const (
	byTaint depth = iota
	byLabels
	byPorts
	bySize
	byRules
	byNothingKnown
)

// whyNotWith says what keeps d, which has affinity to pods that are there or planned,
// from where they are. It returns "" if there are none such.
func (w reasons) whyNotWith(pool int, d *demand, near *topology.Near) string {
	bins := w.binsWith(near.Kinds)
	if slices.Contains(near.Keys, topology.Hostname) {
		return w.whyNotJoin(d, near, bins)
	}
	return w.whyNotFollow(pool, d, near, bins)
}

// binsWith returns the new nodes that pods of these kinds are planned on, at most so
// many as are looked at.
func (w reasons) binsWith(kinds []int) []*bin {
	var out []*bin
	for i := range w.bins {
		if len(out) == mostAsked {
			break
		}
		if slices.ContainsFunc(w.kindsOn(&w.bins[i]), func(m topology.Move) bool { return slices.Contains(kinds, m.Kind) }) {
			out = append(out, &w.bins[i])
		}
	}
	return out
}

// kindsOn returns how many pods of which kinds one node of the bin takes.
func (w reasons) kindsOn(b *bin) []topology.Move {
	var out []topology.Move
	for _, t := range b.take {
		for _, part := range w.demands[t.demand].parts() {
			out = append(out, topology.Move{Kind: part.of.kind, Site: -1, Pods: part.pods * t.pods})
		}
	}
	return out
}

// whyNotJoin says what keeps d from the nodes that the pods are on: of the one that
// comes closest to taking it.
func (w reasons) whyNotJoin(d *demand, near *topology.Near, bins []*bin) string {
	var best obstacle
	var where string
	nodes := 0
	note := func(o obstacle, count int, name string) {
		if nodes == 0 || o.depth > best.depth {
			best, where = o, name
		}
		nodes += count
	}
	for _, b := range bins {
		note(w.whyNotBin(d, b), b.count, "planned on a new node of NodePool "+w.pool(b.offer).Name)
	}
	for i, site := range near.Sites {
		if i == mostAsked {
			nodes += len(near.Sites) - i
			break
		}
		name := "on node " + w.snapshot.Nodes[site].Name
		if w.planned(near.Kinds, site) {
			name = "planned " + name
		}
		note(w.whyNotNode(d, site), 1, name)
	}
	switch nodes {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("they are %s, which %s; %s", where, best.why, best.help)
	}
	return fmt.Sprintf("no node that they are on takes it; some are %s, which %s; %s", where, best.why, best.help)
}

// planned reports whether a pod of one of the kinds is planned on a site.
func (w reasons) planned(kinds []int, site int) bool {
	return slices.ContainsFunc(w.placed, func(p placement) bool { return p.site == site && slices.Contains(kinds, p.kind) })
}

// whyNotNode says what keeps d from a node there is.
func (w reasons) whyNotNode(d *demand, site int) obstacle {
	i := slices.IndexFunc(w.nodes, func(n fit.NodeRow) bool { return n.Site == site })
	if i < 0 {
		return obstacle{byTaint, "takes no more pods", "run one of them elsewhere"}
	}
	n, shape := &w.nodes[i], Soft(d.Shape)
	if t, bad := n.Untolerated(shape); bad {
		return untolerated(t)
	}
	for j, alternative := range d.Shape.Alternatives() {
		c, ok := n.Labels.Satisfies(alternative)
		if ok {
			break
		}
		if j == len(d.Shape.Alternatives())-1 {
			return unmet(c.Incoming)
		}
	}
	if fit.Conflict(d.Shape.HostPorts, n.Ports()) {
		return obstacle{byPorts, "has host port " + ports(d.Shape.HostPorts, n.Ports()) + " taken", "use another"}
	}
	for r, want := range d.Shape.Requests {
		if free := n.Free.At(r); want > free {
			return obstacle{bySize, fmt.Sprintf("has %s of %s left", model.FormatQuantity(r, max(free, 0)), w.snapshot.Resources[r]), "request less, free capacity there, or run one of them elsewhere"}
		}
	}
	if w.topology.Holds(d.kind, site) == 0 {
		return otherRules
	}
	return obstacle{byNothingKnown, "does not take it as planned", tryAgain}
}

// whyNotBin says what keeps d from the nodes of the bin.
func (w reasons) whyNotBin(d *demand, b *bin) obstacle {
	pool := w.pool(b.offer)
	if t, bad := model.Untolerated(pool.Taints, Soft(d.Shape).Tolerations); bad {
		return untolerated(t)
	}
	left, r := w.labelsMet(d, b)
	if left == nil {
		return unmet(r)
	}
	for _, t := range b.take {
		for _, taken := range w.standsFor(w.demands[t.demand], t.chosen[0]) {
			if conflict(d, taken.of) {
				return obstacle{byPorts, "has host port " + ports(d.Shape.HostPorts, taken.of.Shape.HostPorts) + " taken by " + taken.pod.Key(), "use another"}
			}
		}
	}
	if o, ok := w.tooSmall(d, b, left); ok {
		return o
	}
	if w.topology.Beside(d.kind, w.kindsOn(b)) == 0 {
		return otherRules
	}
	return obstacle{byNothingKnown, "does not take it as planned", tryAgain}
}

// labelsMet returns where in the window of its pool a node of the bin could be launched
// and meets all that d asks of labels, or else what it asks and no such node meets.
func (w reasons) labelsMet(d *demand, b *bin) (fit.Bits, model.Requirement) {
	window := w.pool(b.offer).Offers.Window()
	asked := w.askedOf(*b)
	longest, unmet := -1, model.Requirement{}
	for _, alternative := range d.Shape.Alternatives() {
		left, broken := w.offersWithin(window, *b), -1
		for i, r := range alternative {
			both := asked.And(r)
			together, _ := both.Get(r.Key)
			if left.Keep(window.Of(w.catalogue.Match(together))); left.Empty() {
				broken = i
				break
			}
		}
		if broken < 0 {
			return left, unmet
		}
		if broken > longest {
			longest, unmet = broken, alternative[broken]
		}
	}
	return nil, unmet
}

// tooSmall says what the nodes of the bin have too little of for one more pod of d, as
// whichever of the offers they are launched.
func (w reasons) tooSmall(d *demand, b *bin, offers fit.Bits) (obstacle, bool) {
	pool := w.pool(b.offer)
	taken := w.podRequests(*b)
	requests := taken.Plus(d.Shape.Requests)
	var rows []*fit.TypeRow
	fits := false
	for t := pool.Types.From; t < pool.Types.To; t++ {
		if row := &w.catalogue.Types[t]; pool.Offers.Window().Any(offers, row.Offers) {
			rows = append(rows, row)
			if requests.Fits(row.Free) {
				fits = true
				if w.covered(row.Pool, b.capacity, row.Capacity) || len(w.floors[row.Pool]) > 0 || w.limits.covers(row.Pool, b.capacity, row.Capacity) {
					return obstacle{}, false
				}
			}
		}
	}
	if fits {
		return obstacle{bySize, "the limits of that NodePool keep from being larger", "raise spec.limits of that NodePool"}, true
	}
	for r, want := range d.Shape.Requests {
		if want == 0 || len(rows) == 0 {
			continue
		}
		largest := slices.MaxFunc(rows, func(a, b *fit.TypeRow) int { return int(min(max(a.Free.At(r)-b.Free.At(r), -1), 1)) })
		if most := largest.Free.At(r); requests.At(r) > most {
			return obstacle{bySize, fmt.Sprintf("has too little %s for it: the largest that it can be, %s, has %s for pods, %s of it taken",
				w.snapshot.Resources[r], largest.Name, model.FormatQuantity(r, most), model.FormatQuantity(r, taken.At(r))),
				"request less, or have that NodePool allow larger types"}, true
		}
	}
	return obstacle{bySize, "can be of no type that has enough of everything", "request less, or have that NodePool allow larger types"}, true
}

func untolerated(t model.Taint) obstacle {
	return obstacle{byTaint, "has taint " + t.String() + " that it does not tolerate", "add a toleration for it to the pod"}
}

func unmet(r model.Requirement) obstacle {
	return obstacle{byLabels, "cannot meet " + r.String(), "drop that from the pod, or have them ask for it, too"}
}

var otherRules = obstacle{byRules, "has pods that a rule on the hostname keeps it from", "make its anti-affinity or spread a preference, or that of these pods"}

// ports names those of the ports that conflict with what is taken.
func ports(all, taken []model.HostPort) string {
	var out []string
	for _, p := range all {
		if fit.Conflict([]model.HostPort{p}, taken) {
			out = append(out, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
		}
	}
	return strings.Join(out, ", ")
}

// whyNotFollow says what keeps the pool from launching a node for d in the domains that
// the pods are in.
func (w reasons) whyNotFollow(pool int, d *demand, near *topology.Near, bins []*bin) string {
	var demands model.Requirements
	var where []string
	settled := true
	for i, key := range near.Keys {
		values := near.Values[i]
		for _, v := range w.valuesOf(bins, key) {
			if !slices.Contains(values, v) {
				values, settled = append(slices.Clip(values), v), false
			}
		}
		if len(values) == 0 {
			if len(bins) == 0 {
				return ""
			}
			return fmt.Sprintf("they are planned on new nodes that have no value of %s that could be known; have NodePool %s set it in the labels or requirements of its template", w.topology.Keys[key], w.pool(bins[0].offer).Name)
		}
		slices.Sort(values)
		demands = demands.And(model.NewRequirement(w.topology.Keys[key], model.In, values...))
		where = append(where, topology.List(values))
	}
	head := "they run only in "
	switch {
	case !settled:
		head = "they run or are planned in some of "
	case len(bins) > 0 || slices.ContainsFunc(w.placed, func(p placement) bool { return slices.Contains(near.Kinds, p.kind) }):
		head = "they run or are planned only in "
	}
	return head + strings.Join(where, " and ") + w.whyNoneIn(pool, d, demands, settled)
}

// valuesOf returns the values of a label that the new nodes may have.
func (w reasons) valuesOf(bins []*bin, key int) []string {
	if len(bins) == 0 {
		return nil
	}
	var out []string
	for _, a := range w.atlas.areas([]int{key}) {
		value := a.valueOf(w.topology.Keys[key])
		if value != "" && slices.ContainsFunc(bins, func(b *bin) bool { return w.mayBeIn(*b, a) && a.offers.Overlaps(w.offersOf(*b)) }) {
			out = append(out, value)
		}
	}
	return out
}

// whyNoneIn says what keeps the pool from launching a node for d that meets the demands,
// and goes on where the text names them.
func (w reasons) whyNoneIn(pool int, d *demand, demands model.Requirements, settled bool) string {
	p := &w.catalogue.Pools[pool]
	there := w.catalogue.MatchAll(demands)
	fits := func(offers fit.OfferSet) (out []*fit.TypeRow) {
		for o := range offers.In(p.Offers) {
			if row := &w.catalogue.Types[w.catalogue.Offers[o].Type]; there.Has(o) && d.Shape.Requests.Fits(row.Free) {
				out = append(out, row)
			}
		}
		return out
	}
	rows := fits(d.Offers)
	switch {
	case len(rows) > 0 && !slices.ContainsFunc(rows, func(row *fit.TypeRow) bool { return w.limits.allow(pool, row.Capacity, 1) > 0 }):
		return ", where the limits of this NodePool allow no node for it; raise spec.limits of the NodePool, or run one of them elsewhere"
	case len(rows) > 0 && !settled:
		return "; the next plan tries again once they are bound"
	}
	suits := w.catalogue.Any(d.Shape.Alternatives())
	switch {
	case len(rows) > 0 || len(fits(fit.NewOfferSet(suits.And(p.Usable.Bits())))) > 0:
		return ", where this plan found no place for it; the next plan tries again"
	case len(fits(fit.NewOfferSet(suits.And(p.Allowed.Bits())))) > 0:
		return ", where the cloud has no capacity for it now; Karpenter asks again in a few minutes"
	}
	if len(fits(p.Allowed)) > 0 {
		return ", where its own node selector, affinity or volumes allow no node of this NodePool; relax these, or run one of them elsewhere"
	}
	return ", where this NodePool has no offering for it; have it allow one there, or run one of them elsewhere"
}
