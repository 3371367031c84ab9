// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
	"karpenter/solve/lp"
	"karpenter/solve/topology"
	"karpenter/solve/work"
)

// proof is the phase that proves how much a plan must cost at least.
type proof struct {
	*draft
	worth map[*demand]float64 // of one pod, wherever a plan launches a node for it
}

// bound returns a price no feasible plan for the pods that x places can beat,
// given that pods planned before stay where they were planned. Preferences that
// the plan grants may lead pods of their kinds to pools of less weight. Rules between
// pods are as the planner reads them while it launches nodes: pods spread over all
// domains in which nodes could be launched.
//
// Proof. Let v_i be the worth of a pod of demand i; if its pods are worth more in some
// domains than in others, the average where all are worth least (division.cheapest).
// The pods on a new node are worth at most what the node costs, whatever they are; the
// pods on an existing node are worth at most what the room there is, by the Lagrangian
// bound, and so are those on a node that takes from a reservation, which has so many of
// them.
// So for every feasible plan  cost ≥ Σ worth of its pods − Σ worth on existing
// nodes − Σ worth above the price on reserved nodes
// ≥ Σ_i n_i·v_i − Σ_nodes worth of the room − Σ_reservations worth of the room
// above the price.
func bound(x, planned *draft) model.Price {
	cost := float64(x.priceOfBins())
	if cost == 0 {
		return 0
	}
	v, cut := &proof{x, map[*demand]float64{}}, newDivider(x, planned)
	fresh, divided := cut.divide(v.boughtFor())
	sales := v.sales(fresh, divided, planned)
	for _, s := range sales {
		s.prove(s.values())
	}
	r := v.relaxation(divided)
	part := v.budget.Part(1 - wholeShare)
	sum := r.bound(cost, tries, part)
	if len(r.stores) > 0 && !r.crowded && sum < near*cost {
		r, sum = v.proveAgain(r, sum, cost, sales, divided, part)
	}
	v.budget.Return(part)
	if sum < near*cost {
		sum = max(sum, r.whole(v.budget))
	}
	for i, d := range v.demands {
		v.worth[d] = r.cheapest(i)
	}
	sum -= v.reservationsWorth()
	sum = max(sum, cut.opened())
	// Rounding must not lift the sum above the truth; and as all prices are
	// multiples of the quantum, so is the optimum.
	quantum := float64(v.catalogue.Quantum)
	return v.catalogue.Quantum * model.Price(math.Ceil((max(sum, 0)*(1-1e-9)-1e-3)/quantum))
}

// near is up to which part of the cost a bound is worth more work.
const near = 0.9

// relaxation returns the problem that the proof is about, with a store for each node
// that takes pods.
func (v *proof) relaxation(divided map[*demand]*division) *relaxation {
	out := &relaxation{}
	bought, loose, counts := v.boughtFor(), loose(v.draft), v.countsAtStart()
	for _, d := range v.demands {
		out.of = append(out.of, out.divided(divided[d], float64(min(bought[d], 1)))) // the others have room
	}
	items := 0
	var s store
	for _, n := range v.nodesWithKept() {
		v.budget.Spend(len(v.demands))
		s.Reset(v.roomOf(n.Free))
		s.pieces = s.pieces[:0]
		for at, d := range v.demands {
			if divided[d] == nil || fit.Room(n.Free, d.Shape.Requests, 1) == 0 || !n.Takes(d.Shape) {
				continue
			}
			f := out.of[at][divided[d].in(v.topology.At(n.Site), v.topology)]
			most := fit.Room(n.Free, d.Shape.Requests, int(f.most))
			if !loose && most > 0 {
				most = min(most, counts[0].Holds(d.kind, n.Site))
			}
			if most > 0 {
				v.addTo(&s.Knapsack, n.Free, d, most)
				s.pieces = append(s.pieces, f.at)
			}
		}
		if len(s.pieces) > 0 {
			s.prices = make([]float64, len(s.Room))
			if items += len(s.pieces); items <= mostStored {
				out.stores = append(out.stores, s)
				s = store{}
			} else {
				out.beyond, out.crowded = out.beyond+s.worth(out.proved, out.part), true
			}
		}
	}
	return out
}

// nodesWithKept returns the nodes with what earlier plans put on them and stays
// there.
func (v *proof) nodesWithKept() []fit.NodeRow {
	rows := slices.Clone(v.startNodes)
	for _, p := range v.keptStill() {
		i := slices.IndexFunc(rows, func(n fit.NodeRow) bool { return n.Site == p.site })
		put(v.wholeOf(p.kind).Shape, &rows[i], 1)
	}
	return rows
}

// sales returns what tiers have for the pieces whose pods a plan may launch nodes of them
// for; tiers that follow each other and have the same pieces are one. When the plan may
// break rules that the planner keeps while it launches nodes, it is as if there were no
// rules between pods but that some never share a node with their like: a plan that keeps
// all rules is one of those that the proof is about.
func (v *proof) sales(fresh *draft, divided map[*demand]*division, planned *draft) []*sale {
	confined, bought := v.confined(planned), v.boughtFor()
	var out []*sale
	for i, tier := range v.tiers {
		s, open := &sale{market: &market{draft: fresh, tier: tier, proving: true}, of: map[*demand]*piece{}}, []*demand(nil)
		for _, d := range v.demands {
			if at := confined[d]; at != anyTier && at != i {
				continue
			}
			if all := divided[d]; all != nil {
				for _, p := range all.pieces {
					p.likely = all.likely(p) * max(float64(bought[d])/float64(all.pods), leastLikely)
					s.of[&p.demand], open = p, append(open, &p.demand)
				}
			}
		}
		if n := len(out) - 1; n >= 0 && slices.Equal(open, out[n].open) && !v.demanding(fit.Range{From: out[n].market.tier.From, To: tier.To}) {
			out[n].market.tier.To = tier.To // what is proven of both is the same
			continue
		}
		s.open = open
		out = append(out, s)
	}
	for _, s := range out {
		s.problem = s.market.covering(s.open)
		for i, f := range s.problem.demands {
			s.problem.Items[i].Likely = s.of[f].likely
		}
	}
	return out
}

// leastLikely is the least part of the pods of a demand that values are found for: others than
// the plan launches nodes for may be those that have room on the nodes there are.
const leastLikely = 0.3

// sale is what a tier has for pieces: the proof lowers what a pod of each is worth until no
// node of any tier is worth more than it costs, whatever pods share it.
type sale struct {
	market  *market
	open    []*demand
	problem *covering
	of      map[*demand]*piece
}

// values returns what pods were worth when nodes were launched for them or, where none were
// or the plan keeps other rules, what they are worth then: what is near to being proven, and
// what the master problem says.
func (s *sale) values() (values, master []float64) {
	q, m := s.problem, s.market
	known := func(f *demand) bool {
		_, ok := m.prices[s.of[f].source]
		return ok
	}
	values, all, stricter := make([]float64, len(q.demands)), !m.homeless(), m.stricter()
	if s.unknown() {
		return values, nil
	}
	master = slices.Clone(values)
	if !all || slices.ContainsFunc(q.demands, func(f *demand) bool { return !known(f) }) {
		values, master = cover.Values(&q.Problem, cover.Unlimited(), m.budget)
		all = false
	}
	for i, f := range q.demands {
		if known(f) && (all || !stricter) { // beside pods that are tied to a domain, prices are those of other problems
			p := m.prices[s.of[f].source]
			values[i], master[i] = p.proven, p.master
		}
	}
	return values, master
}

// unknown reports whether plans are feasible that no node of the problem stands for.
func (s *sale) unknown() bool {
	return s.market.partial || s.market.policy.RelaxMinValues && s.market.demanding(s.market.tier)
}

// prove lowers what a pod of each piece is worth to what it is in the tier, beginning with
// these values, as far as other tiers have proven no less.
func (s *sale) prove(values, master []float64) {
	for _, some := range [][]float64{values, master} {
		for i := range some {
			some[i] = min(some[i], s.of[s.problem.demands[i]].worth)
		}
	}
	for i, w := range cover.Prove(&s.problem.Problem, values, master, s.market.budget) {
		s.of[s.problem.demands[i]].lower(w)
	}
}

// quote lowers what a pod of each piece is worth to what it was worth when nodes were
// launched for it, and to what it costs where it is alone with its like.
func (s *sale) quote() {
	q := s.problem
	s.market.budget.Spend(len(q.demands) * len(q.candidates))
	for i, f := range q.demands {
		p, least := s.of[f], math.Inf(1)
		if price, ok := s.market.prices[p.source]; ok {
			least = price.proven
		}
		for j := range q.candidates {
			if c := &q.candidates[j]; c.canTake(f) {
				room := fit.Room(c.free, f.Shape.Requests, q.Items[i].Count)
				if f.most > 0 {
					room = min(room, f.most)
				}
				least = min(least, c.price/float64(room))
			}
		}
		p.lower(least)
	}
}

// proveAgain returns the relaxation that proves most, and what it proves. What pods
// were worth as if the nodes there are did not exist is too much for those that have room
// on them, and too little for the others, of whose worth that takes. So it asks first what
// pods are worth beside the nodes there are if a new node could be worth more than its price.
func (v *proof) proveAgain(r *relaxation, sum, cost float64, sales []*sale, divided map[*demand]*division, budget *work.Budget) (*relaxation, float64) {
	reset := func() {
		for _, all := range divided {
			for _, p := range all.pieces {
				p.worth = math.Inf(1)
			}
		}
	}
	reset()
	for _, s := range sales {
		if s.quote(); s.unknown() {
			return r, sum
		}
	}
	other := r.with(v.demands, divided, r.first)
	other.bound(cost, tries/2, budget)
	beside := other.worths(v.demands, divided)
	reset()
	for _, s := range sales {
		values := make([]float64, len(s.problem.demands))
		for i, f := range s.problem.demands {
			values[i] = beside[s.of[f]]
		}
		s.prove(values, nil)
	}
	other = r.with(v.demands, divided, nil)
	if higher := other.bound(cost, tries, budget); higher > sum {
		return other, higher
	}
	return r, sum
}

// boughtFor returns for how many pods of each demand new nodes were launched.
func (v *proof) boughtFor() map[*demand]int {
	out := map[*demand]int{}
	for _, b := range v.bins {
		for _, t := range b.take {
			for _, m := range v.demands[t.demand].parts() {
				out[m.of] += m.pods * t.pods * b.count
			}
		}
	}
	return out
}

// anyTier stands for all tiers.
const anyTier = -1

// confined returns by demand the position of the only tier in which a feasible plan launches
// nodes for it, anyTier or, where nothing is known of what they cost, noTier: a preference
// that is granted may lead pods to where they go at last.
func (v *proof) confined(planned *draft) map[*demand]int {
	out, granted := map[*demand]int{}, map[int]int{}
	wishing := &proof{draft: planned}
	for _, d := range planned.demands {
		if _, ok := planned.wishes[d.kind]; !ok {
			continue
		}
		at := wishing.confinedTo(d)
		if before, ok := granted[d.kind]; ok && before != at {
			at = anyTier
		}
		granted[d.kind] = at
	}
	for _, d := range v.demands {
		at, favoured := granted[d.kind]
		switch out[d] = v.confinedTo(d); {
		case favoured && v.avoids(d.Shape):
			out[d] = noTier
		case favoured && at != out[d]:
			out[d] = anyTier
		}
	}
	return out
}

// confinedTo returns the position of the only tier in which a feasible plan launches
// nodes for d, or anyTier: the heaviest that suits it, unless limits or rules between
// pods could push it to a lighter tier or to where it only goes at last.
func (v *proof) confinedTo(d *demand) int {
	pools := v.catalogue.Pools
	limited := func(r fit.Range) bool {
		return slices.ContainsFunc(pools[r.From:r.To], func(p fit.Pool) bool { return len(p.Limits) > 0 })
	}
	i := v.heaviest(d)
	if i < 0 || v.softened && (d.firm || limited(fit.Range{To: len(pools)})) {
		return anyTier
	}
	if v.topology.FollowedBy(d.kind, func(kind int) bool { return kind != d.kind }) {
		return anyTier // it may go to where a pod is that must be near it
	}
	tier := v.tiers[i]
	if !limited(tier) && (v.topology.Free(d.kind) || !v.demanding(tier) && v.offersEverywhere(d, tier)) {
		return i
	}
	if v.avoids(d.Shape) || v.catalogue.Fits(d.Demand, fit.Range{From: v.offersIn(tier).To, To: len(v.catalogue.Offers)}) {
		return anyTier
	}
	return i
}

// offersEverywhere reports whether no rule between pods can push d to a lighter tier:
// the tier has an offer that a pod fits in every combination of topology domains where
// a lighter one has any, and no pod must join the node of another.
func (v *proof) offersEverywhere(d *demand, tier tier) bool {
	if slices.ContainsFunc(d.Shape.PodTerms, func(t model.PodTerm) bool { return t.Key == model.LabelHostname && !t.Anti && t.Weight == 0 }) {
		return false
	}
	pools := v.catalogue.Pools
	lighter := fit.Range{From: pools[tier.To-1].Offers.To, To: len(v.catalogue.Offers)}
	var spelled []*fit.Spelling
	for _, k := range v.topology.Pinned(d.kind) {
		if k != topology.Hostname {
			spelled = append(spelled, v.catalogue.Spelling(v.topology.Keys[k]))
		}
	}
	uncovered := map[string]bool{}
	for o := range d.Offers.In(lighter) {
		domains, ok := domainsOf(o, spelled)
		if !ok { // others may be what asks for the label
			return false
		}
		uncovered[domains] = true
	}
	for t := pools[tier.From].Types.From; t < pools[tier.To-1].Types.To && len(uncovered) > 0; t++ {
		row := &v.catalogue.Types[t]
		if !d.Offers.Any(row.Offers) || !d.Shape.Requests.Fits(row.Free) {
			continue
		}
		for o := range d.Offers.In(row.Offers) {
			if domains, ok := domainsOf(o, spelled); ok {
				delete(uncovered, domains)
			}
		}
	}
	return len(uncovered) == 0
}

// domainsOf returns a text that is equal for offers with equal values of some labels. It
// reports false if the offer lacks one or has one of several values.
func domainsOf(offer int, spelled []*fit.Spelling) (string, bool) {
	if len(spelled) == 0 {
		return "", true
	}
	var b [64]byte
	text := b[:0]
	for _, s := range spelled {
		if s.Absent.Has(offer) || s.Open.Has(offer) {
			return "", false
		}
		text = binary.AppendUvarint(text, uint64(s.Of[offer]))
	}
	return string(text), true
}

// roomWorth is an upper bound on the worth of the pods that could use what is
// free on a node. Of pods of a demand that fit there, it takes how many takes
// says.
func (v *proof) roomWorth(free model.Resources, takes func(d *demand, fit int) int) float64 {
	var sack lp.Knapsack
	for _, d := range v.demands {
		most := fit.Room(free, d.Shape.Requests, d.loose-len(d.left))
		if v.worth[d] == 0 || most == 0 {
			continue
		}
		if most = takes(d, most); most == 0 {
			continue
		}
		v.addTo(&sack, free, d, most)
		sack.Value[len(sack.Value)-1] = v.worth[d]
	}
	if len(sack.Value) == 0 {
		return 0
	}
	sack.Room = v.roomOf(free)
	worth, _ := sack.Relax(make([]float64, len(sack.Room)))
	return worth
}

// roomOf is the room of a knapsack for what is free on a node: all of each resource.
func (v *proof) roomOf(free model.Resources) []float64 {
	var out []float64
	for _, r := range v.wanted {
		out = append(out, float64(min(free.At(r), 1)))
	}
	return out
}

// addTo adds pods of d, worth nothing yet, to a knapsack for what is free on a node.
func (v *proof) addTo(sack *lp.Knapsack, free model.Resources, d *demand, most int) {
	request := make([]float64, 0, 8) // enough for what most clusters request, without allocation
	for _, r := range v.wanted {
		request = append(request, float64(d.Shape.Requests.At(r))/float64(max(free.At(r), 1)))
	}
	sack.Add(0, float64(most), request)
}

// reservationsWorth is an upper bound on the worth, above their price, of the
// nodes that reservations gave at the start.
func (v *proof) reservationsWorth() float64 {
	sum := 0.0
	for _, id := range v.catalogue.Reservations() {
		left := v.reservations.left[id]
		if left <= 0 {
			continue
		}
		most := 0.0
		for o := range v.catalogue.Reserved(id).All() {
			row := &v.catalogue.Types[v.catalogue.Offers[o].Type]
			worth := v.roomWorth(row.Free, func(d *demand, pods int) int { return v.onNew(o, d, pods) })
			most = max(most, worth-float64(v.catalogue.Offers[o].Price))
		}
		sum += most * float64(left)
	}
	return sum
}

// onNew returns how many of so many pods of d that fit share a new node launched
// from the offer at most, in whatever plan.
func (v *proof) onNew(offer int, d *demand, pods int) int {
	if !d.Offers.Has(offer) {
		return 0
	}
	if most := v.never(d); most > 0 {
		return min(most, pods)
	}
	return pods
}
