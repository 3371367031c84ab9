// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"maps"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// draft is a plan under construction. The phases of planning add to it in
// turn: see attempt.
type draft struct {
	*problem
	state
	known     lessons           // of earlier attempts, and of this one so far
	prices    map[*demand]price // of one pod, where nodes were launched for the demand
	abandoned abandonment
	moved     bool // not all that was planned before stays there
	curbed    bool // limits kept pods from the nodes that cost least
}

// price is what a pod is worth by the dual of the covering problem: by the values that prove
// most, and by those of the last master problem.
type price struct{ proven, master float64 }

// state is all of a draft that planning changes.
type state struct {
	survey
	topology *topology.State
	atlas    *atlas
	demands  []*demand
	nodes    []fit.NodeRow // with what is planned for them
	placed   []placement
	kept     []placement // what was planned before and stays there
	limits   *limits
	prepaid  map[string]int64 // how many nodes reservations still give
	bins     []bin
	bundles  map[string][]tied // by key of its first pod
	settled  map[string]int    // positions of demands that settledAs returned
	softened bool              // demands put up with soft taints that they could have avoided
	final    bool              // pods that were left are being put wherever there is room: the rules kept are stricter than what the bound knows
}

// survey is what follows from the demands as a whole.
type survey struct {
	classes   []fit.OfferSet   // the sets of offers that demands may use
	exemplars []*demand        // one of each class
	byOffers  map[uint64][]int // classes, by digest of their offers
	wanted    []int            // positions of the resources anyone requests
	picky     []bool           // pools that leave a label open which some demand asks about
	groups    []group          // demands that share a bound on one new node
	one       *demand          // the only one surveyed, of which one pod is left; nil = all are
}

// group is demands of which one new node takes at most limit pods together.
type group struct {
	limit   int
	members fit.Bits // over demands
}

// mostReordered is up to how large a draft is for which places are tried that the
// rules between pods seem to close, as pods may be bound in another order, and nodes
// settled by all that any rule is about.
const mostReordered = 200

// abandonment says how far a draft got that was abandoned.
type abandonment int8

const (
	inProgress   abandonment = iota
	beforeBuying             // what the nodes there are did not take is worth too much
	whileBuying              // as the covering problem of a tier says
	whileWishing             // the budget of a plan that honors preferences is overdrawn
)

// newDraft returns a draft in which nothing is planned yet.
func newDraft(q *problem, known lessons) *draft {
	q.budget.Spend(len(q.snapshot.Nodes) * (16 + len(q.snapshot.Pending)))
	x := &draft{problem: q, known: known, prices: map[*demand]price{}}
	x.nodes, x.limits, x.prepaid = slices.Clone(q.startNodes), newLimits(q.catalogue), maps.Clone(q.reservations.left)
	if known.lavish {
		x.limits = noLimits(q.catalogue)
	}
	x.bundles, x.settled = map[string][]tied{}, map[string]int{}
	x.count(topology.New(q.snapshot, q.wishes, &q.memory.rules))
	for i := range q.startDemands {
		d := q.startDemands[i]
		d.left = slices.Clone(d.left)
		x.demands = append(x.demands, &d)
		if !d.buyable && x.topology.Awaited(d.kind) && !x.someTakes(x.nodes, d.Shape) {
			x.topology.GiveUp(d.kind)
		}
	}
	slices.SortStableFunc(x.demands, func(a, b *demand) int { return known.after(a.kind) - known.after(b.kind) })
	return x
}

// stepsPerNode is what it takes to see whether a pod fits on a node.
const stepsPerNode = 64

// someTakes reports whether a pod of the shape fits on one of the nodes, whatever taints
// only prefer.
func (x *draft) someTakes(nodes []fit.NodeRow, s *model.Shape) bool {
	x.budget.Spend(stepsPerNode * len(nodes))
	soft := Soft(s)
	return slices.ContainsFunc(nodes, func(n fit.NodeRow) bool { return fit.Room(n.Free, s.Requests, 1) > 0 && n.Takes(soft) })
}

// count has pods counted by t from now on.
func (x *draft) count(t *topology.State) {
	x.budget.Spend(t.Steps)
	if x.known.hurry {
		t.Hurry()
	}
	x.topology, x.atlas = t, &atlas{problem: x.problem, topology: t, known: map[string][]area{}}
}

// mark is a draft as it was at some time.
type mark struct {
	state
	demands []demand
	counts  topology.Mark
}

// mark returns what takes the draft back to where it is now.
func (x *draft) mark() mark {
	m := mark{state: x.state.clone(), counts: x.topology.Mark()}
	for _, d := range x.demands {
		m.demands = append(m.demands, d.clone())
	}
	return m
}

// rollback takes the draft back to the mark, which can be used again.
func (x *draft) rollback(m mark) {
	x.state = m.state.clone()
	x.topology.Rollback(m.counts)
	for i, d := range x.demands {
		*d = m.demands[i].clone()
	}
}

// improvable reports whether another draft may be made that is better: this one is whole, and no
// trial, and budget is left.
func (x *draft) improvable() bool {
	return x.trial == nil && x.abandoned == inProgress && !x.overspends() && !x.budget.Spent()
}

// overspends reports whether the draft is not worth its work any more: it honors
// preferences, of which there can be fewer, and its budget is overdrawn.
func (x *draft) overspends() bool { return x.leaves != nil && x.budget.Overdrawn() }

// size is what it takes to copy the draft.
func (x *draft) size() int { return len(x.demands) + len(x.placed) + len(x.nodes) + len(x.bins) }

// clone returns a copy that shares nothing with the state that changes, but for
// what the demands and the topology hold.
func (s state) clone() state {
	s.demands, s.placed, s.kept = slices.Clone(s.demands), slices.Clone(s.placed), slices.Clone(s.kept)
	s.limits, s.prepaid = s.limits.clone(), maps.Clone(s.prepaid)
	s.bundles, s.settled = maps.Clone(s.bundles), maps.Clone(s.settled)
	s.nodes, s.bins = slices.Clone(s.nodes), slices.Clone(s.bins)
	for i := range s.bins {
		s.bins[i].take = slices.Clone(s.bins[i].take)
	}
	return s
}

// keptStill returns what was planned before and is part of the draft now.
func (x *draft) keptStill() []placement {
	at := map[string]int{}
	for _, p := range x.placed {
		at[p.pod.Key()] = 1 + p.site
	}
	return slices.DeleteFunc(slices.Clone(x.kept), func(p placement) bool { return at[p.pod.Key()] != 1+p.site })
}

func (x *draft) podsLeft() int {
	n := 0
	for _, d := range x.demands {
		n += len(d.left)
	}
	return n
}

func (x *draft) homeless() bool {
	return slices.ContainsFunc(x.demands, func(d *demand) bool { return len(d.left)+len(d.stuck) > 0 })
}

// plentiful reports whether pods of d may count on any number of nodes from the
// offer: reservations are for those that have nothing else.
func (x *draft) plentiful(offer int, d *demand) bool {
	if !x.reservations.offers.Has(offer) {
		return true
	}
	return x.prepaid[x.catalogue.Offers[offer].ReservationID] > 0 && d.Offers.Less(x.reservations.offers).Empty()
}

// heaviest returns the position of the heaviest tier that has an offer for d, or -1.
func (x *draft) heaviest(d *demand) int {
	return slices.IndexFunc(x.tiers, func(t tier) bool { return x.catalogue.Fits(d.Demand, x.offersIn(t)) })
}

// inOrder returns the demands in the order their pods are settled: hardest
// first, but those with affinity to pods of others after these.
func (x *draft) inOrder() []*demand {
	var out, waiting []*demand
	for _, d := range x.demands {
		switch {
		case d.whole != nil:
		case x.topology.Follows(d.kind) && !x.known.first[d.kind]:
			waiting = append(waiting, d)
		default:
			out = append(out, d)
		}
	}
	if len(waiting) == 0 {
		return out
	}
	leaders, followers := x.topology.Leaders(), map[int][]int{} // of a kind: positions in waiting
	waits := make([]int, len(waiting))                          // for so many others
	there := map[int]int{}                                      // demands of a kind that wait
	for _, d := range waiting {
		there[d.kind]++
	}
	for i, d := range waiting {
		for _, kind := range leaders[d.kind] {
			waits[i] += there[kind]
			followers[kind] = append(followers[kind], i)
		}
		if slices.Contains(leaders[d.kind], d.kind) {
			waits[i]-- // not for itself
		}
	}
	const done = -1
	for range waiting {
		i := slices.Index(waits, 0)
		if i < 0 {
			i = slices.IndexFunc(waits, func(n int) bool { return n > 0 })
		}
		out, waits[i] = append(out, waiting[i]), done
		for _, j := range followers[waiting[i].kind] {
			if waits[j] > 0 && j != i {
				waits[j]--
			}
		}
	}
	return out
}

// wholeOf returns the demand of all pods of a kind.
func (x *draft) wholeOf(kind int) *demand {
	i := slices.IndexFunc(x.demands, func(d *demand) bool { return d.kind == kind && d.whole == nil })
	return x.demands[i]
}

// place puts pods of d on a node.
func (x *draft) place(n *fit.NodeRow, d *demand, pods []model.Pod) {
	put(d.Shape, n, len(pods))
	for _, p := range pods {
		x.placed = append(x.placed, placement{d.kind, n.Site, p})
	}
}

// room returns how many pods of d the node takes, at most limit, but for rules
// between pods on other keys than the hostname.
func (x *draft) room(d *demand, n *fit.NodeRow, limit int) int {
	room := alone(d.Shape, n, limit)
	if room > 0 && !x.topology.Free(d.kind) {
		room = min(room, x.topology.Cap(d.kind, n.Site))
	}
	return room
}
