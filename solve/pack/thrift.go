// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
)

// Rules between pods are settled pod by pod, before nodes are launched: a pod goes
// where its part of a node is cheapest, and pods that may disturb each other are
// kept apart. And the nodes there are take the hardest pods first, not those for which
// new nodes cost most. With thousands of pods that costs next to nothing. With a handful it
// may cost a node. So the nodes of a small plan are abandoned, a few at a time, and
// places are looked for their pods one by one; what costs less is kept. Pods of a kind that
// are on nodes there are make room for those of an abandoned node.

// Bounds of thrift.
const (
	mostThrifty  = 12      // new nodes of a plan
	mostGivenUp  = 3       // of them at a time
	mostTurned   = 4       // new nodes of a plan for which all tactics are tried
	thriftChecks = 1 << 14 // changes that are tried, times the pods each has to be checked with

	typesPerCheck = 20 // that are looked at for the labels of new nodes, in the time of one check
)

// tactic is a way to look for places, one pod at a time.
type tactic struct {
	easiest bool // pods come first, not the hardest
	last    int  // so many domains come last, the cheapest of all
}

// tactics are tried one after the other, until one makes the plan cheaper.
var tactics = []tactic{{}, {true, 0}, {false, 1}, {true, 1}, {false, 2}, {true, 2}, {false, 3}, {true, 3}}

// economise makes a small plan cheaper where pods have rules between each other, or are
// on nodes there are.
func economise(x *draft) {
	if !x.thrifty() {
		return
	}
	most, ruled := 1, x.ruled()
	if ruled {
		most = mostGivenUp
	}
	left, cost := x.setAside(), x.cost()
	n := searching(x, thriftChecks, true)
	for t, size := 0, 1; t < len(tactics) && !n.exhausted(); {
		switch {
		case size > min(most, len(n.bins)) || t > 0 && len(n.bins) > mostTurned:
			t, size = t+1, 1
		case slices.ContainsFunc(subsets(len(n.bins), size), func(bins []int) bool { return n.without(bins, size == 1 || len(n.bins) <= mostTurned, tactics[t]) }):
			x.final = x.final || ruled // what was abandoned may have kept rules that the bound counts on
			t, size = 0, 1
		default:
			size++
		}
	}
	x.putBack(left)
	if x.cost() < cost {
		repair{x}.insertAll() // limits may allow more now
	}
}

// thrifty reports whether a draft is small, and pods with rules between each other or on nodes there are
// may make it more expensive than need be.
func (x *draft) thrifty() bool {
	return x.trial == nil && (len(x.placed) > 0 || x.ruled()) && x.newNodes() <= mostThrifty && x.cost() > 0
}

// ruled reports whether some rule between pods is about the pending pods.
func (x *draft) ruled() bool {
	return slices.ContainsFunc(x.demands, func(d *demand) bool { return !x.topology.Free(d.kind) })
}

// exhausted reports whether no work is left to try another change.
func (n *insertion) exhausted() bool { return n.work <= 0 || n.budget.Spent() }

// setAside returns by demand the pods that are left, which are left no more.
func (x *draft) setAside() [][]model.Pod {
	var out [][]model.Pod
	for _, d := range x.demands {
		out = append(out, append(d.left, d.stuck...))
		d.left, d.stuck = nil, nil
	}
	return out
}

// putBack leaves the pods again that setAside returned.
func (x *draft) putBack(left [][]model.Pod) {
	for i := range left {
		x.demands[i].left = left[i]
	}
}

// without finds cheaper places for the pods of some of the new nodes, and reports whether
// there are any. If asked to, it also tries to have pods that are on nodes there are make
// room.
func (n *insertion) without(bins []int, exchange bool, t tactic) bool {
	if n.withoutSome(bins, noKind, t) {
		return true
	}
	return exchange && slices.ContainsFunc(n.movableKinds(), func(kind int) bool { return n.withoutSome(bins, kind, t) })
}

// noKind stands for no kind.
const noKind = -1

// movableKinds returns the kinds of which pods are on nodes there are where no earlier
// plan put them.
func (n *insertion) movableKinds() []int {
	var out []int
	for _, p := range n.loosePlaced() {
		if !slices.Contains(out, p.kind) {
			out = append(out, p.kind)
		}
	}
	return out
}

// loosePlaced returns what is on nodes there are, but what an earlier plan put there.
func (x *draft) loosePlaced() []placement {
	kept := map[string]bool{}
	for _, p := range x.keptStill() {
		kept[p.pod.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(x.placed), func(p placement) bool { return kept[p.pod.Key()] })
}

// newNodes returns how many nodes the draft launches.
func (x *draft) newNodes() int {
	n := 0
	for i := range x.bins {
		n += x.bins[i].count
	}
	return n
}

// withoutSome finds cheaper places for the pods of some of the new nodes, and then for
// those of the kind that are on nodes there are. It reports whether there are any.
func (n *insertion) withoutSome(bins []int, kind int, t tactic) bool {
	if n.exhausted() {
		return false
	}
	before, cost, tiers := n.mark(), n.cost(), n.tiersUsed()
	for _, more := range []bool{false, true} {
		n.spend(n.size() + n.outlooks()/typesPerCheck)
		n.giveUp(bins, kind)
		order := n.inOrder()
		if t.easiest {
			slices.Reverse(order)
		}
		if i := slices.IndexFunc(order, func(d *demand) bool { return d.kind == kind }); i >= 0 { // its pods make room
			order = append(slices.Delete(slices.Clone(order), i, i+1), order[i])
		}
		for _, d := range order {
			for len(d.left) > 0 && n.cost() < cost && n.insertCheaply(d, more, t.last) {
			}
		}
		if n.podsLeft() == 0 && n.cost() < cost && !n.leavesTiers(tiers) && n.standsAlone() {
			return true
		}
		n.rollback(before)
		if n.exhausted() {
			return false
		}
	}
	return false
}

// standsAlone reports whether the scheduler would follow the plan if no other nodes
// come.
func (n *insertion) standsAlone() bool {
	open := n.open
	defer func() { n.open = open }()
	n.open = nil
	return n.stands()
}

// inTier is a tier that nodes are launched in for pods of a kind.
type inTier struct{ kind, tier int }

// tiersUsed returns in which tiers nodes are launched for which kinds.
func (n *insertion) tiersUsed() map[inTier]bool {
	out := map[inTier]bool{}
	for _, b := range n.bins {
		tier := n.tierOf(n.poolOf(b.offer))
		for _, t := range b.take {
			for _, m := range n.demands[t.demand].parts() {
				out[inTier{m.of.kind, tier}] = true
			}
		}
	}
	return out
}

// leavesTiers reports whether nodes are launched for some kind in a tier that was
// not used for it or, if none was, that is not the heaviest that suits it: pools of less
// weight are only for pods that others cannot take.
func (n *insertion) leavesTiers(used map[inTier]bool) bool {
	for now := range n.tiersUsed() {
		some := false
		for was := range used {
			some = some || was.kind == now.kind
		}
		if !used[now] && (some || now.tier != n.heaviest(n.wholeOf(now.kind))) {
			return true
		}
	}
	return false
}

// giveUp takes new nodes out of the plan, and pods of the kind off the nodes there are.
// These pods are left.
func (n *insertion) giveUp(bins []int, kind int) {
	gone := map[string]bool{}
	for _, i := range bins {
		for _, t := range n.bins[i].take {
			for _, first := range t.chosen {
				for _, one := range n.standsFor(n.demands[t.demand], first) {
					gone[one.pod.Key()] = true
					d := n.wholeOf(one.of.kind)
					d.left = append(d.left, one.pod)
				}
				delete(n.bundles, first.Key())
			}
		}
	}
	for _, p := range n.loosePlaced() {
		if p.kind == kind {
			gone[p.pod.Key()] = true
			d := n.wholeOf(kind)
			d.left = append(d.left, p.pod)
		}
	}
	n.unplace(gone)
	n.refill()
	n.rebuild()
}

// insertCheaply finds a place for one pod of d wherever it fits: on a node there
// is, then on new nodes of the plan or, if asked for, on one more before those.
func (n *insertion) insertCheaply(d *demand, more bool, last int) bool {
	if n.exhausted() {
		return false
	}
	n.before = n.mark()
	n.spend(n.size())
	areas := func(keys []int) []area {
		out := n.areasFor(d, keys)
		last := min(last, len(out))
		return append(out[last:len(out):len(out)], out[:last]...)
	}
	onPlanned := func(keys []int) bool { return n.onPlanned(d, areas(keys), keys, anywhere) }
	onMore := func(keys []int) bool { return n.onMore(d, areas(keys), anywhere) }
	keys := n.keysOf(d)
	switch {
	case n.onNode(d, anywhere):
		return true
	case !d.buyable:
		return false
	case more:
		return slices.ContainsFunc(keys, onMore) || slices.ContainsFunc(keys, onPlanned)
	}
	return slices.ContainsFunc(keys, onPlanned) || slices.ContainsFunc(keys, onMore)
}

// subsets returns the sets of so many of the first n numbers.
func subsets(n, size int) [][]int {
	if size == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for last := size - 1; last < n; last++ {
		for _, some := range subsets(last, size-1) {
			out = append(out, append(slices.Clone(some), last))
		}
	}
	return out
}
