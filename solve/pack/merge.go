// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/solve/topology"
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

// merger is a new node that takes the pods of another one.
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
	n := merging(x, saverChecks, true)
	for n.condense() {
		x.final = x.final || ruled
	}
	x.putBack(left)
}

// condense finds one of the new nodes whose pods find places all at once, together on another node or
// wherever there is capacity, such that the plan costs less. It reports whether it did.
func (n *insertion) condense() bool {
	before, cost, tiers := n.mark(), n.cost(), n.tiersUsed()
	cheaper := func() bool { return n.cost() < cost*(1-1e-9) && !n.leavesTiers(tiers) && n.standsAlone() }
	for _, m := range n.savers() {
		if n.merge(m) && cheaper() {
			return true
		}
		n.rollback(before)
	}
	for i := 0; i < len(n.bins) && !n.exhausted(); i++ {
		n.spend(n.size())
		n.giveUp([]int{i}, noKind)
		if n.topUp(); n.podsLeft() == 0 && n.cost() < cost && n.stands() && cheaper() {
			return true
		}
		n.rollback(before)
	}
	return false
}

// mergeWithin merges new nodes of the draft until it is within limits, and reports whether it is.
// Pods are spread over all domains where nodes may come, or over those where there are some.
func mergeWithin(x *draft, overAll bool) bool {
	n := merging(x, mergeChecks, overAll)
	for len(x.bins) <= mostMerged && x.beyond(x.remaining()) && slices.ContainsFunc(n.mergers(), n.merge) {
		x.final = true // what was merged may have kept rules that the bound counts on
	}
	x.known.lavish, x.limits = false, x.remaining()
	return !x.beyond(x.limits)
}

// merging is a search for places of a draft, for pods that are spread as mergeWithin says.
func merging(x *draft, work int, overAll bool) *insertion {
	n := &insertion{repair: repair{x}, work: work}
	if overAll {
		n.open = func(d *demand) []topology.Place { return n.atlas.nearby(d.kind, d.Shape) }
	}
	n.rebuild()
	return n
}

// spreadsOverAll reports whether the pods of the draft are spread over all domains where nodes may come.
func spreadsOverAll(x *draft) bool {
	before := x.mark()
	defer x.rollback(before)
	return merging(x, mergeChecks, true).stands()
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

// mergers returns which nodes may take the pods of others to come nearer to limits, those first for
// which that costs least.
func (n *insertion) mergers() []merger {
	left := n.remaining()
	return n.mergeable(func(into, from bin, offer int) (float64, bool) {
		freed := left.relief(n.poolOf(into.offer), into.capacity.Minus(n.capacity(offer))) + left.relief(n.poolOf(from.offer), from.capacity)
		return n.more(into, from, offer) / freed, freed > 0
	})
}

// savers returns which nodes may take the pods of others to cost less, those first that cost least.
func (n *insertion) savers() []merger {
	return n.mergeable(func(into, from bin, offer int) (float64, bool) {
		more := n.more(into, from, offer)
		return more, more < 0
	})
}

// more is what one node costs more than the two whose pods it takes.
func (n *insertion) more(into, from bin, offer int) float64 {
	price := func(o int) float64 { return n.charged(n.catalogue.Offers[o].Price) }
	return price(offer) - price(into.offer) - price(from.offer)
}

// mergeable returns which nodes may take the pods of others, by a cost, where that is worth a try.
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
	at := n.topology.At(len(n.snapshot.Nodes) + i)
	return slices.ContainsFunc(n.keysOf(d), func(keys []int) bool {
		return slices.ContainsFunc(n.areasFor(d, keys), func(a area) bool {
			return inside(a.place, at, keys) && n.mayBeIn(n.bins[i], a) &&
				slices.ContainsFunc(termsIn(d, a), func(term int) bool { return n.joinBin(d, n.tiedTo(d, a, term), i, a.offers) })
		})
	})
}
