// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// group looks for nodes that are replaced together for less. Those are asked
// about whose pods are worth least in proportion to what the nodes cost, as many
// as might save something, and halves of that. It returns nil when there are
// none.
func (r *round) group(candidates []int) *offer {
	sites := r.wasteful(candidates)
	var best *offer
	for n := len(sites); n >= 2; n /= 2 {
		if o := r.together(sites[:n]); o.good() && (best == nil || o.net() > best.net()) {
			best = o
		}
	}
	if best == nil {
		return nil
	}
	return r.trim(best, sites)
}

// together asks about the nodes, without those whose type stands in the way.
func (r *round) together(sites []int) *offer {
	o := r.weigh(sites)
	for len(o.alike) > 0 {
		if sites = without(sites, o.alike); len(sites) < 2 {
			break
		}
		o = r.weigh(sites)
	}
	return r.rehearsed(o)
}

// mostTogether bounds a command: it ends when the last of its replacements is
// ready, and fails as a whole.
const mostTogether = 200

// wasteful returns the candidates, worst first, whose pods would cost less on new
// nodes by what a replacement has to save, taken together.
func (r *round) wasteful(candidates []int) []int {
	type waste struct {
		site         int
		price, worth float64
	}
	var all []waste
	for _, i := range candidates {
		n := &r.s.Nodes[i]
		if n.Price <= 0 {
			continue
		}
		w := waste{site: i, price: float64(n.Price)}
		for j := range n.Movable {
			w.worth += r.worth[n.Movable[j].Shape] * float64(len(n.Movable[j].Pods))
		}
		all = append(all, w)
	}
	slices.SortStableFunc(all, func(a, b waste) int { return cmp.Compare(a.worth*b.price, b.worth*a.price) })
	var out []int
	price, worth := 0.0, 0.0
	for _, w := range all {
		if price, worth = price+w.price, worth+w.worth; worth > price*(1-r.policy.Hysteresis) {
			break
		}
		if len(out) == mostTogether {
			break
		}
		if next := append(out, w.site); r.allowed(model.Underutilized, next...) {
			out = next
		} else {
			price, worth = price-w.price, worth-w.worth
		}
	}
	return out
}

// trims is how many members of a group are looked at one by one.
const trims = 8

// trim leaves out members that the group saves more without. Sites has them with
// the most wasteful first; the last ones are looked at.
func (r *round) trim(o *offer, sites []int) *offer {
	members := slices.DeleteFunc(slices.Clone(sites), func(i int) bool { return !slices.Contains(o.sites, i) })
	for i := range min(trims, len(members)-2) {
		less := r.rehearsed(r.weigh(without(o.sites, members[len(members)-1-i:len(members)-i])))
		if less.good() && less.net() >= o.net() {
			o = less
		}
	}
	return o
}

// without returns the sites that are none of those.
func without(sites, those []int) []int {
	return slices.DeleteFunc(slices.Clone(sites), func(i int) bool { return slices.Contains(those, i) })
}

// rank returns the rank of an offer for a group, given those for single nodes. A
// group that saves more than its nodes one by one comes before them.
func rank(group *offer, singles []*offer) float64 {
	saved, first := 0.0, group.yield()
	for _, o := range singles {
		if o.good() && slices.Contains(group.sites, o.sites[0]) {
			saved, first = saved+o.net(), max(first, o.rank)
		}
	}
	if group.net() > saved*(1+1e-9) {
		return first
	}
	return group.yield()
}
