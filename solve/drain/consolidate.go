// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// take makes the command of a good offer part of the plan.
func (r *round) take(o *offer) { r.accept(o.command, o.sites, o.pending) }

// consolidate removes nodes whose pods can be had for less elsewhere: those
// first that save most in proportion to what they disrupt.
func (r *round) consolidate() {
	candidates := slices.DeleteFunc(r.candidates(model.Underutilized), func(i int) bool {
		if r.allowed(model.Underutilized, i) {
			return false
		}
		r.overBudget(&r.s.Nodes[i], model.Underutilized)
		return true
	})
	units := r.unitsAmong(candidates)
	if len(units) == 0 {
		return
	}
	r.open(model.Underutilized)
	r.price(slices.Concat(units...))
	r.rows, r.homes = r.memory.Nodes(&r.s), map[*model.Shape][]string{}
	offers := r.weighAll(units)
	for _, o := range offers {
		o.rank = o.yield()
	}
	before := len(r.plan.Commands)
	best, skipped := r.group(alone(units), offers)
	all := offers
	if best != nil {
		best.rank = rank(best, offers)
		all = append([]*offer{best}, offers...)
	}
	slices.SortStableFunc(all, func(a, b *offer) int { return cmp.Compare(b.rank, a.rank) })
	for _, o := range all {
		r.takeIfGood(o)
	}
	if !skipped || len(r.plan.Commands) > before {
		return
	}
	// The single nodes do not go after all, so groups are not skipped because of them.
	if best, _ := r.group(alone(units), nil); best != nil {
		r.takeIfGood(best)
	}
}

// unitsAmong returns the candidates with what is removed together with each, in their
// order, and notes of the others why they stay.
func (r *round) unitsAmong(candidates []int) [][]int {
	var out [][]int
	asked := map[int]bool{}
	for _, i := range candidates {
		unit := r.whole(i)
		if asked[unit[0]] {
			continue
		}
		asked[unit[0]] = true
		if len(unit) > 1 {
			cause, why := r.tied(unit, model.Underutilized)
			if why == "" && !r.allowed(model.Underutilized, unit...) {
				cause, why = model.ByBudget, "disruption budgets allow fewer nodes now"
			}
			if why != "" {
				r.keepAll(unit, cause, why)
				continue
			}
		}
		out = append(out, unit)
	}
	return out
}

// keepAll notes of all nodes of a unit why they are kept, unless that is known.
func (r *round) keepAll(unit []int, cause model.Cause, why string) {
	for _, i := range unit {
		if n := &r.s.Nodes[i]; r.refused[n.Name].Why == "" {
			r.keep(n, model.Underutilized, cause, r.asWhole(i, why))
		}
	}
}

// alone returns the sites that are units by themselves.
func alone(units [][]int) []int {
	var out []int
	for _, unit := range units {
		if len(unit) == 1 {
			out = append(out, unit[0])
		}
	}
	return out
}

// takeIfGood makes the command of the offer part of the plan if it is still good
// beside what was taken since, and with preferences.
func (r *round) takeIfGood(o *offer) {
	if r.busy(o.sites) {
		if o.whole {
			r.keepAll(o.sites, model.ByUse, "pods of other nodes go to one of them")
		}
		return
	}
	if o.good() && !r.allowed(model.Underutilized, o.sites...) {
		for _, i := range o.sites {
			r.overBudget(&r.s.Nodes[i], model.Underutilized)
		}
		return
	}
	if o.good() && (o.at != len(r.plan.Commands) || o.manner == roughly) {
		o = r.weigh(o.sites)
	}
	o = r.rehearsed(o)
	switch {
	case o.good():
		r.take(o)
	case len(o.sites) == 1 || o.whole:
		for _, i := range o.sites {
			n := &r.s.Nodes[i]
			r.keep(n, model.Underutilized, o.cause, r.asWhole(i, o.why))
			stay := r.refused[n.Name]
			stay.Score = o.lowest()
			r.refused[n.Name] = stay
		}
	}
}

// busy reports whether one of the nodes is removed already or is to take
// pods of others, which it notes.
func (may *permits) busy(sites []int) bool {
	busy := false
	for _, i := range sites {
		n := &may.s.Nodes[i]
		if _, receives := may.receiving[n.Name]; receives {
			may.keep(n, model.Underutilized, model.ByUse, use(may.receiving[n.Name]))
			busy = true
		}
		busy = busy || may.taken[n.Name]
	}
	return busy
}
