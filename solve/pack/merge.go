// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/solve/fit"
)

// Limits may allow fewer nodes than cost least. The covering problem finds nodes that take less of
// them, but only for pods as rules between pods have settled them for domains before. So a small draft
// that was made as if there were no limits is also brought within them: two of its nodes become one,
// again and again, those two for which that costs least. Without limits, nodes of small drafts
// are merged as long as that costs less.

// Bounds of merging.
const (
	mostMerged  = 32      // new nodes of a draft
	mergeChecks = 1 << 17 // changes that are tried, times the pods each has to be checked with
	saverChecks = 1 << 12 // the same, where no limits are in the way
)

// merger is one new node that is to take the pods of another one.
type merger struct {
	into, from int // positions of bins
	cost       float64
}

// condense makes a small plan cheaper by nodes whose pods find places all at once.
func condense(x *draft) {
	if !x.thrifty() {
		return
	}
	left, ruled := x.setAside(), x.ruled()
	n := searching(x, saverChecks, true)
	for n.saves() {
		x.final = x.final || ruled
	}
	x.putBack(left)
}

// saves finds one of the new nodes whose pods find places all at once, together on another node or
// wherever there is capacity, such that the plan costs less. It reports whether it did.
func (n *insertion) saves() bool {
	before, cost, tiers := n.mark(), n.cost(), n.tiersUsed()
	cheaper := func() bool { return n.cost() < cost*(1-1e-9) && !n.leavesTiers(tiers) && n.stands() && n.standsAlone() }
	for _, m := range n.savers() {
		if n.merge(m) {
			if cheaper() {
				return true
			}
			n.rollback(before)
		}
	}
	for i := 0; i < len(n.bins) && !n.exhausted(); i++ {
		n.spend(n.size())
		n.giveUp([]int{i}, noKind)
		if n.topUp(); n.podsLeft() == 0 && cheaper() {
			return true
		}
		n.rollback(before)
	}
	return false
}

// mergeWithin merges new nodes of the draft until it is within limits, and reports whether it is.
// Pods are spread over all domains where nodes may come, or over those where there are some.
func mergeWithin(x *draft, overAll bool) bool {
	n := searching(x, mergeChecks, overAll)
	for len(x.bins) <= mostMerged && x.beyond(x.remaining()) && slices.ContainsFunc(n.mergers(), n.merge) {
		x.final = true // what was merged may have kept rules that the bound counts on
	}
	x.known.lavish, x.limits = false, x.remaining()
	return !x.beyond(x.limits)
}

// spreadsOverAll reports whether the pods of the draft are spread over all domains where nodes may come.
func spreadsOverAll(x *draft) bool {
	before := x.mark()
	defer x.rollback(before)
	return searching(x, mergeChecks, true).stands()
}

// remaining returns what the new nodes leave of limits: less than nothing where they are beyond them.
func (x *draft) remaining() *limits {
	left := newLimits(x.catalogue)
	for _, b := range x.bins {
		left.take(x.poolOf(b.offer), b.capacity, b.count)
	}
	return left
}

// nearLimits reports whether new nodes take most of what limits of some pool allow.
func (x *draft) nearLimits() bool {
	all, left := newLimits(x.catalogue), x.remaining()
	for pool := range all.pools {
		for i, most := range all.pools[pool].left {
			if most > 0 && left.pools[pool].left[i] < most/2 {
				return true
			}
		}
	}
	return false
}

// beyond reports whether new nodes are in a pool of which less than nothing is left.
func (x *draft) beyond(left *limits) bool {
	return slices.ContainsFunc(x.bins, func(b bin) bool { return left.allow(x.poolOf(b.offer), nil, 1) == 0 })
}

// mergers returns what may bring the draft nearer to limits, that first which costs least for what it frees.
func (n *insertion) mergers() []merger {
	left := n.remaining()
	return n.mergeable(func(into, from bin, offer int) (float64, bool) {
		freed := left.relief(n.poolOf(into.offer), into.capacity.Minus(n.capacity(offer))) + left.relief(n.poolOf(from.offer), from.capacity)
		return n.more(into, from, offer) / freed, freed > 0
	})
}

// savers returns what may make the draft cheaper, that first which saves most.
func (n *insertion) savers() []merger {
	return n.mergeable(func(into, from bin, offer int) (float64, bool) {
		more := n.more(into, from, offer)
		return more, more < 0
	})
}

// more is by how much a node of the offer costs more than the two it replaces.
func (n *insertion) more(into, from bin, offer int) float64 {
	price := func(o int) float64 { return n.charged(n.catalogue.Offers[o].Price) }
	return price(offer) - price(into.offer) - price(from.offer)
}

// mergeable returns all that is worth a try, by its cost.
func (n *insertion) mergeable(cost func(into, from bin, offer int) (float64, bool)) []merger {
	var out []merger
	for i, into := range n.bins {
		for j, from := range n.bins {
			if i == j || n.exhausted() {
				continue
			}
			if offer, ok := n.mergedOffer(into, from); ok {
				if c, worth := cost(into, from, offer); worth {
					out = append(out, merger{i, j, c})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b merger) int { return cmp.Compare(a.cost, b.cost) })
	return out
}

// mergedOffer returns the cheapest offer for a node that takes the pods of both, as far as what they
// request says and where they may be, and reports whether there is one.
func (n *insertion) mergedOffer(into, from bin) (best int, ok bool) {
	all := n.pool(into.offer).Offers
	window := all.Window()
	offers := n.offersWithin(window, into)
	for _, t := range from.take {
		n.wholeOf(n.demands[t.demand].kind).Offers.Keep(window, offers)
	}
	requests := n.podRequests(into).Plus(n.podRequests(from))
	n.budget.Spend(stepsPerBin + all.To - all.From)
	for i := range offers.All() {
		o := &n.catalogue.Offers[window.First()+i]
		if (!ok || o.Price < n.catalogue.Offers[best].Price) && requests.Fits(n.catalogue.Types[o.Type].Free) {
			best, ok = window.First()+i, true
		}
	}
	return best, ok
}

// merge puts the pods of one node on another one. It changes nothing if the scheduler would not
// follow the plan then.
func (n *insertion) merge(m merger) bool {
	if n.exhausted() {
		return false
	}
	n.before = n.mark()
	n.spend(n.size())
	n.giveUp([]int{m.from}, noKind)
	if m.from < m.into {
		m.into--
	}
	for _, d := range n.inOrder() {
		for len(d.left) > 0 {
			if !n.joins(d, m.into) {
				n.undo()
				return false
			}
		}
	}
	return n.keeps(true)
}

// joins puts the next pod of d on a new node, whatever the rules between pods say, and reports whether
// the node has capacity for it.
func (n *insertion) joins(d *demand, i int) bool {
	for _, keys := range n.keysOf(d) {
		for s := range n.seats(d, fit.Range{From: i, To: i + 1}, n.areasFor(d, keys), keys, anywhere) {
			if n.sits(d, s) {
				return true
			}
		}
	}
	return false
}
