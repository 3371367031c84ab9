// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Bounds of the search for places for single pods: how many changes to the
// draft are tried, times the pods that each has to be checked with.
const (
	insertions      = 1 << 17
	trialInsertions = 1 << 12 // where only a Trial is wanted
	insertionSteps  = 200     // of the budget, that checking one pod takes
	looksPerStep    = 32      // at whether a node may be in an area, for one pod that is checked
)

// insertion is the part of repair that finds places for pods that are left, one
// pod at a time: on a node there is, on a node of the plan, or on one more node.
// It keeps a change only if the scheduler would still follow the whole plan.
type insertion struct {
	repair
	work    int  // that is left
	before  mark // the draft without the change that is being tried
	sparing bool // nodes take as little as they can of limits, whatever they cost

	open func(d *demand) []topology.Place // where more nodes may come, over which pods of d are spread as well; nil = none come
}

// searching is a search for cheaper places of a draft whose nodes are single: pods are spread over all
// domains where nodes may come, or over those where there are some.
func searching(x *draft, work int, overAll bool) *insertion {
	n := &insertion{repair: repair{x}, work: work}
	if overAll {
		n.open = func(d *demand) []topology.Place { return n.atlas.nearby(d.kind, d.Shape) }
	}
	n.rebuild()
	return n
}

// insertAll finds places for pods that are left. It reports whether it looked at
// all that it could try. If the nodes that it launched may have used up limits, and pods
// are still left, it looks for more places with nodes that take less of limits.
func (r repair) insertAll() bool {
	if r.trial != nil {
		return r.insertEach(trialInsertions, false)
	}
	start, nodes := r.mark(), len(r.bins)
	done := r.insertEach(insertions, false)
	if !done || !r.homeless() || len(r.bins) == nodes || !r.limits.any(fit.Range{To: len(r.limits.pools)}) {
		return done
	}
	first, left := r.mark(), leftOf(r.demands)
	r.rollback(start)
	r.insertEach(insertions, true)
	if left.atMost(leftOf(r.demands)) {
		r.rollback(first)
	}
	return done
}

// insertEach finds places for pods that are left, one by one. It reports whether it looked at
// all that it could try. It has a bound of its own: a plan that leaves pods because
// others were made cheap first would be no plan.
func (r repair) insertEach(work int, sparing bool) bool {
	n := &insertion{repair: r, work: work, sparing: sparing}
	orphaned := r.topology.Orphaned()
	for progress := r.homeless(); progress; {
		progress = false
		for _, d := range r.inOrder() {
			for !orphaned[d.kind] && len(d.left) > 0 && n.work > 0 && !(n.leaves != nil && n.budget.Spent()) && n.insert(d) {
				progress = true
			}
			if n.leaves != nil && len(d.left) > n.leaves[d.kind] {
				return false // the plan without wishes is better
			}
		}
	}
	return n.work > 0
}

// prune takes pods out of the draft until the scheduler follows it.
func (r repair) prune() {
	for {
		r.gatherLeft()
		r.known.add(r.verify())
		if !slices.ContainsFunc(r.demands, func(d *demand) bool { return len(d.stuck) > 0 }) {
			break
		}
	}
	r.refill()
	r.rebuild()
}

// refill has the nodes there are take what is placed on them, and nothing else.
func (r repair) refill() {
	r.nodes = slices.Clone(r.startNodes)
	rows := map[int]*fit.NodeRow{}
	for i := range r.nodes {
		rows[r.nodes[i].Site] = &r.nodes[i]
	}
	for _, p := range r.placed {
		put(r.snapshot.Pending[p.kind].Shape, rows[p.site], 1)
	}
}

// keeps reports whether the draft was changed and the scheduler would follow the
// plan now. If it would not, the change is undone.
func (n *insertion) keeps(changed bool) bool {
	if !changed || n.stands() {
		return changed
	}
	n.undo()
	return false
}

// undo takes the draft back to where it was before the change.
func (n *insertion) undo() {
	n.spend(n.size())
	n.rollback(n.before)
	n.abandoned = inProgress
}

func (n *insertion) spend(steps int) {
	n.work -= steps
	n.budget.Spend(insertionSteps * steps)
}

// stands counts again and reports whether the scheduler would follow the plan.
func (n *insertion) stands() bool {
	moves, _ := n.recount()
	if n.open != nil {
		n.openAll()
	}
	admitted := n.topology.Admit(moves)
	pods, stands := 1+n.topology.Looks/8, true
	for i, m := range moves {
		pods += m.Pods
		stands = stands && admitted[i] == m.Pods
	}
	n.spend(pods)
	return stands
}

// openAll has pods counted as if more nodes could come: so pods are spread over what there
// could be, not only over what is.
func (n *insertion) openAll() {
	n.topology.Final(false)
	for _, d := range n.demands {
		if d.whole == nil && len(d.Shape.Spread) > 0 {
			n.topology.Buyable(d.kind, n.open(d))
		}
	}
}

// insert finds a place for one pod of d: where the rules between pods seem to let
// it in or else, as pods may be bound in another order and a node may be settled
// by a pod that joins it, wherever it fits.
func (n *insertion) insert(d *demand) bool {
	n.before = n.mark()
	n.spend(n.size())
	if n.insertWhere(d, n.seems) {
		return true
	}
	small := n.size() <= mostReordered && len(n.bins)+len(n.placed) > 0
	return small && len(n.wishes) == 0 && n.trial == nil &&
		n.insertWhere(d, func(d *demand, p topology.Place, site int) bool { return !n.seems(d, p, site) })
}

// seems reports whether the rules between pods let the next pod of d run on a site
// at the place, as pods are counted now; site is -1 on one more node.
func (n *insertion) seems(d *demand, p topology.Place, site int) bool {
	return n.topology.Allows(d.kind, p) && (site < 0 || n.topology.Cap(d.kind, site) > 0)
}

// worth says whether a place is worth a try for the next pod of d; site is -1 on one
// more node.
type worth func(d *demand, p topology.Place, site int) bool

// anywhere finds every place worth a try, whatever the rules between pods seem to say.
func anywhere(*demand, topology.Place, int) bool { return true }

// insertWhere finds a place for one pod of d among those that are worth a try.
func (n *insertion) insertWhere(d *demand, w worth) bool {
	return n.onNode(d, w) || d.buyable && slices.ContainsFunc(n.keysOf(d), func(keys []int) bool {
		areas := n.areasFor(d, keys)
		return n.onPlanned(d, areas, keys, w) || n.onMore(d, areas, w)
	})
}

// areasFor returns the areas in which a node for d may be, cheapest first.
func (n *insertion) areasFor(d *demand, keys []int) []area {
	areas := slices.DeleteFunc(slices.Clone(n.atlas.areas(keys)), func(a area) bool {
		return !slices.ContainsFunc(d.Shape.Alternatives(), a.suits)
	})
	n.cheapestFirst(areas, d)
	return areas
}

// onNode finds a place for the next pod of d on a node there is.
func (n *insertion) onNode(d *demand, w worth) bool {
	for i := 0; i < len(n.nodes) && n.work > 0; i++ {
		node := &n.nodes[i]
		fits := alone(d.Shape, node, 1) > 0 && w(d, n.topology.At(node.Site), node.Site)
		if fits && n.keeps(n.onto(d, node)) {
			return true
		}
	}
	return false
}

// seat is a place on a new node of the plan, settled for an area.
type seat struct {
	bin  int
	area area
	term int         // that the pod is tied to there
	more model.Price // for the node, if it has to be a larger one
}

// onPlanned finds a place for the next pod of d on a new node of the plan, settled
// for one of the areas: of few nodes, on the one for which that costs least.
func (n *insertion) onPlanned(d *demand, areas []area, keys []int, w worth) bool {
	n.spend(len(areas) * len(n.bins) / looksPerStep)
	seats := n.seats(d, fit.Range{To: len(n.bins)}, areas, keys, w)
	if len(n.bins) <= fewBins {
		seats = slices.Values(n.cheapest(d, slices.Collect(seats)))
	}
	for s := range seats {
		if n.keeps(n.sits(d, s)) {
			return true
		}
	}
	return false
}

// seats yields the places on some of the new nodes that are worth a try.
func (n *insertion) seats(d *demand, bins fit.Range, areas []area, keys []int, w worth) iter.Seq[seat] {
	return func(yield func(seat) bool) {
		for i := bins.From; i < bins.To; i++ {
			site := len(n.snapshot.Nodes) + i
			for _, a := range areas {
				if n.work <= 0 || !inside(a.place, n.topology.At(site), keys) || !w(d, a.place, site) || !n.mayBeIn(n.bins[i], a) {
					continue
				}
				for _, term := range termsIn(d, a) {
					if !yield(seat{bin: i, area: a, term: term}) {
						return
					}
				}
			}
		}
	}
}

// sits puts the next pod of d there, and reports whether the node has capacity for it.
func (n *insertion) sits(d *demand, s seat) bool {
	return n.joinBin(d, n.tiedTo(d, s.area, s.term), s.bin, s.area.offers)
}

// cheapest returns those of the places that have capacity, by what they cost more.
func (n *insertion) cheapest(d *demand, all []seat) []seat {
	var out []seat
	for _, s := range all {
		b := n.bins[s.bin]
		if offer, ok := n.takes(b, n.tiedTo(d, s.area, s.term), s.area.offers); ok {
			s.more = n.catalogue.Offers[offer].Price - n.catalogue.Offers[b.offer].Price
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b seat) int { return cmp.Compare(a.more, b.more) })
	return out
}

// onMore finds a place for the next pod of d on one more node.
func (n *insertion) onMore(d *demand, areas []area, w worth) bool {
	for _, a := range areas {
		if !a.offers.Overlaps(d.Offers) {
			continue
		}
		n.topology.Buyable(d.kind, []topology.Place{a.place})
		if n.work > 0 && w(d, a.place, -1) && n.onNew(d, a) {
			return true
		}
	}
	return false
}

// cheapestFirst sorts the areas by the price of a node there that takes a pod of d,
// those of heavy pools first.
func (n *insertion) cheapestFirst(areas []area, d *demand) {
	type quote struct {
		tier  int
		price model.Price
	}
	quotes := map[string]quote{}
	for _, a := range areas {
		q := quote{tier: noTier}
		for o := range a.offers.Common(d.Offers) {
			row := &n.catalogue.Types[n.catalogue.Offers[o].Type]
			tier, price := n.tierOf(row.Pool), n.catalogue.Offers[o].Price
			if tier > q.tier { // and so are all that follow
				break
			}
			better := tier < q.tier || price < q.price
			if better && d.Shape.Requests.Fits(row.Free) && n.limits.allow(row.Pool, row.Capacity, 1) > 0 {
				q = quote{tier, price}
			}
		}
		quotes[a.id] = q
	}
	slices.SortStableFunc(areas, func(a, b area) int {
		p, q := quotes[a.id], quotes[b.id]
		return cmp.Or(cmp.Compare(p.tier, q.tier), cmp.Compare(p.price, q.price))
	})
}

// onNew finds a place for the next pod of d on one more node, in the area.
func (n *insertion) onNew(d *demand, a area) bool {
	return slices.ContainsFunc(termsIn(d, a), func(term int) bool {
		return n.keeps(n.launchFor(d, n.tiedTo(d, a, term)))
	})
}

// launchFor launches a node for the next pod of d, as a pod of part. It changes
// nothing if none can be had.
func (n *insertion) launchFor(d, part *demand) bool {
	rest := d.left[1:]
	d.left, part.left = rest, d.left[:1:1]
	alone := n.trial == nil && !n.demanding(fit.Range{To: len(n.floors)}) && len(n.catalogue.Reservations()) == 0
	if !alone {
		n.surveyOne(part)
	}
	for _, tier := range n.tiers {
		if alone {
			n.launchCheapest(part, tier)
		} else if !buyFor(n.draft, tier, []*demand{part}) {
			break
		}
		if len(part.left) == 0 {
			d.left = rest
			if !alone {
				n.takeSurvey()
			}
			return true
		}
	}
	n.undo()
	return false
}

// launchCheapest launches the cheapest node of the tier that takes the only pod of d. A sparing
// insertion takes the cheapest of those that take least of limits.
func (n *insertion) launchCheapest(d *demand, tier tier) {
	best, least, offers := -1, math.Inf(1), d.Offers.Less(n.reservations.offers)
	for pool := tier.From; pool < tier.To; pool++ {
		types := n.catalogue.Pools[pool].Types
		n.budget.Spend(types.To - types.From)
		for t := types.From; t < types.To; t++ {
			row := &n.catalogue.Types[t]
			if !d.Shape.Requests.Fits(row.Free) || !(model.Resources{}).Fits(row.Free) || n.limits.allow(pool, row.Capacity, 1) == 0 {
				continue
			}
			share := 0.0
			if n.sparing {
				share = n.limits.share(pool, row.Capacity)
			}
			for o := row.Offers.From; o < row.Offers.To; o++ {
				if offers.Has(o) && (share < least || share == least && n.catalogue.Offers[o].Price < n.catalogue.Offers[best].Price) {
					best, least = o, share
				}
			}
		}
	}
	if best < 0 {
		return
	}
	b := bin{offer: best, count: 1, capacity: n.capacity(best), take: []portion{{demand: d.index, pods: 1, chosen: d.left[:1:1]}}}
	d.left = nil
	n.limits.take(n.poolOf(best), b.capacity, 1)
	n.bins = append(n.bins, b)
}
