// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// attempts is how often a plan is made again because fewer nodes could be
// launched in some domain than pods were settled for it.
const attempts = 4

// helpings is how often more nodes are launched for pods that had to wait.
const helpings = 2

// mostInOneZone is up to how many pods a draft is made for each zone.
const mostInOneZone = 512

// mostOneByOne is up to how many pods a draft is made by adding one at a time.
const mostOneByOne = 256

// build returns a draft with what can be placed as long as wishes are rules. Pods that
// an earlier plan placed are moved for the sake of domains whose only nodes are being
// deleted if the scheduler follows the draft while these domains count, and all of
// them have a place.
func build(q *problem) *draft {
	x := buildFirst(q, buildWithin(q, buildInOneZone(q, buildInTurn(q))))
	if !x.moved || x.abandoned != inProgress || len(x.doomed()) == 0 || x.overspends() {
		return x
	}
	evicted, outlasts := x.evicted(), repair{x}.outlasts()
	if evicted == 0 && outlasts {
		return x
	}
	out := buildWith(q, lessons{zone: x.known.zone, hurry: x.known.hurry, vanish: true})
	if out.abandoned == inProgress && out.podsLeft() <= x.podsLeft() && (out.evicted() < evicted || !outlasts) {
		return out
	}
	return x
}

// buildInTurn is build as if no domain vanished: pods follow those they have affinity to
// unless more of them have a place if they are bound first, or as many and more of them
// keep theirs. For few pods that is tried whatever it takes.
func buildInTurn(q *problem) *draft {
	x := buildWith(q, lessons{})
	if x.abandoned != inProgress || x.overspends() || x.budget.Overdrawn() && q.toPlace > mostOneByOne || !slices.ContainsFunc(x.demands, func(d *demand) bool { return (x.moved || len(d.left) > 0) && x.topology.Waits(d.kind) }) {
		return x
	}
	out := buildWith(q, lessons{hurry: true})
	if out.abandoned == inProgress && cmp.Or(cmp.Compare(out.podsLeft(), x.podsLeft()), cmp.Compare(len(x.kept), len(out.kept))) < 0 {
		return out
	}
	return x
}

// buildInOneZone returns the draft or, if that costs less, one that puts all pods which affinity
// ties to a zone in the same one: small groups of them share nodes then.
func buildInOneZone(q *problem, x *draft) *draft {
	zone := slices.Index(x.topology.Keys, model.LabelZone)
	if q.trial != nil || q.toPlace > mostInOneZone || zone < 0 || len(x.bins) < 2 || !slices.ContainsFunc(x.demands, func(d *demand) bool {
		return x.topology.Follows(d.kind) && slices.Contains(x.topology.Pinned(d.kind), zone)
	}) {
		return x
	}
	best := x
	for _, a := range x.atlas.areas([]int{zone}) {
		if best.abandoned != inProgress || best.overspends() || best.budget.Spent() {
			break
		}
		out := buildWith(q, lessons{zone: a.valueOf(model.LabelZone), hurry: x.known.hurry})
		if out.abandoned == inProgress && out.podsLeft() <= best.podsLeft() && len(out.kept) >= len(best.kept) && out.priceOfBins() < best.priceOfBins() {
			best = out
		}
	}
	return best
}

// buildWithin returns the draft or, where limits kept it from what costs least or left pods without a
// node, one made as if there were none and then brought within them, if that costs less or leaves
// fewer pods. What a node takes of limits follows from them where a pool has minValues.
func buildWithin(q *problem, x *draft) *draft {
	homeless, few := x.homeless(), q.toPlace <= mostOneByOne
	if !x.improvable() || x.demanding(fit.Range{To: len(x.floors)}) || (homeless || !x.curbed) && !few || !x.curbed && !x.nearLimits() {
		return x
	}
	out := buildWith(q, lessons{zone: x.known.zone, hurry: x.known.hurry, lavish: true})
	if out.abandoned != inProgress || out.homeless() || len(out.kept) < len(x.kept) {
		return x
	}
	condense(out)
	economise(out)
	if !mergeWithin(out, !homeless && spreadsOverAll(x)) || !homeless && out.priceOfBins() >= x.priceOfBins() {
		return x
	}
	return out
}

// firsts is how often a plan is made again in which pods come first that would be left.
const firsts = 3

// buildFirst returns the draft or, if fewer pods are left then, one in which those that are left, and
// could run if others were elsewhere, come first.
func buildFirst(q *problem, x *draft) *draft {
	known := lessons{first: map[int]bool{}, zone: x.known.zone, hurry: x.known.hurry}
	for range firsts {
		if !x.improvable() || q.leaves != nil && len(deprived(x)) == 0 || !x.rivalled(known.first) {
			break
		}
		out := buildWith(q, known)
		if out.abandoned != inProgress || leftOf(x.demands).atMost(leftOf(out.demands)) || len(out.kept) < len(x.kept) {
			break
		}
		x = out
	}
	return x
}

// deprived returns the kinds of which more pods are left than without wishes.
func deprived(x *draft) []int {
	left := make([]int, len(x.leaves))
	for _, d := range x.demands {
		left[d.kind] += len(d.left) + len(d.stuck)
	}
	var kinds []int
	for kind := range left {
		if left[kind] > x.leaves[kind] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// rivalled adds the kinds of which pods are left that could run if others were elsewhere, and reports
// whether it added any: on nodes there are, or where rules between pods let them. Of many pods, those
// that only limits keep from new nodes are not added.
func (x *draft) rivalled(kinds map[int]bool) bool {
	orphaned, added := x.topology.Orphaned(), false
	for _, d := range x.demands {
		if len(d.left) > 0 && !kinds[d.kind] && !orphaned[d.kind] && (d.buyable && !x.topology.Free(d.kind) && (x.toPlace <= mostOneByOne || x.affordable(d)) || x.someTakes(x.startNodes, d.Shape)) {
			kinds[d.kind], added = true, true
		}
	}
	return added
}

// affordable reports whether the limits of some pool are enough for one more node for d.
func (x *draft) affordable(d *demand) bool {
	for o := range d.Offers.All() {
		if row := &x.catalogue.Types[x.catalogue.Offers[o].Type]; d.Shape.Requests.Fits(row.Free) && x.limits.allow(row.Pool, row.Capacity, 1) > 0 {
			return true
		}
	}
	return false
}

// evicted returns how many pods are left that an earlier plan placed.
func (x *draft) evicted() int {
	n := 0
	for _, d := range x.demands {
		for _, p := range d.left {
			if p.Planned != "" {
				n++
			}
		}
	}
	return n
}

// buildWith is build with what is known already. Another attempt is made if there is as much
// left of the budget as the one before took, or pods are few: with less, it would be worse.
func buildWith(q *problem, known lessons) *draft {
	x, before := newDraft(q, known), q.budget.Left()
	for tried := 1; attempt(x) && tried < attempts && !x.budget.Overdrawn(); tried++ {
		took := before - q.budget.Left()
		if before = q.budget.Left(); before < took && q.toPlace > mostOneByOne {
			break
		}
		curbed := x.curbed
		x = newDraft(q, x.known)
		x.curbed = curbed // what it has learned may hide that
	}
	if x.abandoned == inProgress {
		finish(x)
	}
	return x
}

// buildWithPart is build with a part of the budget that is left.
func buildWithPart(part float64, q *problem) *draft {
	defer q.allot(part)()
	return build(q)
}

// conclude places what only wishes kept from its place, and tells what was planned.
func conclude(x *draft) *outcome {
	if x.abandoned == inProgress {
		insertUnwished(x)
		x = steadier(x)
		condense(x)
		economise(x)
		exhaust(x)
		secure(x)
		confirmAll(x)
		repair{x}.sharers()
	}
	out := &outcome{draft: x, plan: &model.Plan{}, left: make([][]model.Pod, len(x.snapshot.Pending))}
	for _, d := range x.demands {
		d.left, d.stuck = append(d.left, d.stuck...), nil
		if d.whole == nil {
			out.left[d.kind] = d.left
		}
	}
	report{x}.fill(out)
	return out
}

// confirmations is how often places are looked for again for pods that find no
// devices as the scheduler looks for them.
const confirmations = 3

// confirmAll has every pod with claims find its devices as the scheduler looks for
// them. Those that do not are put elsewhere, or are left.
func confirmAll(x *draft) {
	for tried := 0; !(repair{x}).confirm(); tried++ {
		repair{x}.prune() // what they took is free again, and pods that need them near lose their places
		if tried == confirmations {
			return
		}
		repair{x}.insertAll()
	}
}

// attempt places what it can. Taints that only prefer to be avoided are
// avoided first, and put up with by what is left. It reports whether the draft
// has learned something that another attempt should know.
func attempt(x *draft) (news bool) {
	x.keepPlanned()
	domains{x}.settleAll()
	if soften(x, func(d *demand) bool { return !d.firm }) { // nothing could be launched for them as they are
		domains{x}.settleAll()
	}
	if x.abandoned != inProgress {
		return false
	}
	if tooDear(x) {
		if softenAll(x) {
			domains{x}.settleAll()
		}
		if tooDear(x) {
			x.abandoned = beforeBuying
			return false
		}
	}
	exchangeAll(x)
	if !buyAll(x) {
		return false
	}
	domains{x}.takeBack()
	if softenAll(x) {
		everywhere(x)
	}
	short := x.known.add(repair{x}.learn())
	refused := x.known.add(repair{x}.verify())
	return short || refused
}

// everywhere tries the nodes there are, then new ones.
func everywhere(x *draft) {
	domains{x}.settleAll()
	buyAll(x)
	domains{x}.takeBack()
}

// finish tries to find places for pods that are left, now that all nodes of
// the plan are known.
func finish(x *draft) {
	if !x.homeless() {
		return
	}
	x.final = true
	fill(x)
	repair{x}.prune()
	softenAll(x)
	repair{x}.insertAll()
}

// insertUnwished finds places for pods that are left where only a wish is in the
// way: preferences leave no pod pending.
func insertUnwished(x *draft) {
	if len(x.wishes) == 0 || !x.homeless() {
		return
	}
	q := x.problem
	hard := *q
	hard.wishes, hard.leaves, x.problem = nil, nil, &hard
	for _, d := range slices.Clone(x.demands) {
		d.left, d.stuck = append(d.left, d.stuck...), nil
		if d.whole == nil && len(d.left) > 0 && x.unwished.Pending[d.kind].Shape != x.snapshot.Pending[d.kind].Shape {
			unwish(x, d)
		}
	}
	repair{x}.rebuild()
	repair{x}.insertAll()
	x.problem = q
}

// unwish has the pods of d that are left demand what they do without preferences.
// Those that have places on new nodes are part of another demand from then on.
func unwish(x *draft, d *demand) {
	before := d.clone()
	before.index, before.whole, before.left = len(x.demands), d, nil
	x.demands = append(x.demands, &before)
	for i := range x.bins {
		b := &x.bins[i]
		b.take = slices.Clone(b.take)
		for j := range b.take {
			if b.take[j].demand == d.index {
				b.take[j].demand = before.index
			}
		}
	}
	shape := x.unwished.Pending[d.kind].Shape
	if x.softened {
		shape = Soft(shape)
	}
	d.Demand = x.compile(model.Pending{Shape: shape, Pods: d.Pods})
	d.buyable = x.buyable(d.Demand)
}

// steadier returns a draft that leaves every pod of an earlier plan on its node and
// adds pods one by one, if x moves some of those and leaves no fewer pods.
func steadier(x *draft) *draft {
	if len(x.keptStill()) == len(x.kept) {
		return x
	}
	out := newDraft(x.problem, x.known)
	out.final = true
	out.keepPlanned()
	if out.podsLeft() > mostOneByOne {
		return x
	}
	out.takeSurvey()
	repair{out}.rebuild()
	done := repair{out}.insertAll()
	if softenAll(out) {
		done = repair{out}.insertAll()
	}
	if !done || out.podsLeft() > x.podsLeft() {
		return x
	}
	return out
}

// fill puts pods that are left on the nodes there are and the nodes of the plan,
// and launches more nodes for pods that others no longer stand in the way of.
func fill(x *draft) {
	repair{x}.topUp()
	if !slices.ContainsFunc(x.demands, func(d *demand) bool { return len(d.left) > 0 && !x.topology.Free(d.kind) }) {
		return
	}
	// What others were planned since may let in pods that had to wait.
	for range helpings {
		before := x.podsLeft()
		everywhere(x)
		x.known.add(repair{x}.verify())
		repair{x}.topUp()
		if x.podsLeft() >= before || x.overspends() || x.budget.Overdrawn() {
			break
		}
	}
}

// softenAll lets what is left put up with soft taints that it could avoid.
func softenAll(x *draft) bool {
	softened := soften(x, func(*demand) bool { return true })
	x.softened = x.softened || softened
	return softened
}

// soften lets those of the demands that have pods left tolerate PreferNoSchedule, and with
// a part the whole, of which the proof knows where its pods may go. It reports whether that
// may help.
func soften(x *draft, which func(*demand) bool) bool {
	softened := false
	for _, d := range x.demands {
		if len(d.left)+len(d.stuck) == 0 || !x.avoids(d.Shape) || !which(d) {
			continue
		}
		x.tolerate(d)
		if d.whole != nil && x.avoids(d.whole.Shape) {
			x.tolerate(d.whole)
			x.softened = x.softened || d.whole.firm
		}
		softened = true
	}
	if softened {
		x.takeSurvey()
	}
	return softened
}

// tolerate has d tolerate PreferNoSchedule.
func (x *draft) tolerate(d *demand) {
	d.Demand = x.compile(model.Pending{Shape: Soft(d.Shape), Pods: d.Pods})
	d.buyable = x.buyable(d.Demand)
}

// tooDear reports whether what is left costs too much to be tried.
func tooDear(x *draft) bool {
	if x.trial == nil || x.trial.worth == nil {
		return false
	}
	sum, left := 0.0, 0
	for _, d := range x.demands {
		pods := len(d.left) + len(d.stuck)
		sum, left = sum+x.trial.worth[d.kind]*float64(pods), left+pods
	}
	return sum > x.trial.most || x.trial.nothing && left > 0
}
