package pack

import (
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
	"karpenter/solve/lp"
	"karpenter/solve/topology"
)

// prove works out what one pod of each demand is worth at least wherever a plan
// buys a node for it: at these worths, no node of any tier is worth more than it
// costs, whatever pods share it. When the plan keeps rules that are stricter than
// the scheduler's, it proves as if there were no rules between pods but that some
// never share a node with their like: a plan that keeps all rules is one of those
// that the proof is about.
func (k *Packer) prove(granted map[int]topology.Wishes) {
	limits, groups := k.limits, k.groups
	defer func() { k.limits, k.groups = limits, groups }()
	k.limits = newLimits(k.catalogue)
	strict := k.stricter()
	if strict {
		k.groups = nil
	}
	bought := k.boughtFor()
	k.worth = map[*demand]float64{}
	for tier := range k.tiers() {
		var free []*demand
		wholes := map[*demand]*demand{}
		for _, d := range k.demands {
			n := bought[d]
			_, favoured := granted[d.kind]
			if d.whole != nil || n == 0 || favoured && k.avoids(d.Shape) { // a preference may lead it to where it goes at last
				continue
			}
			if !favoured && !k.wanders(d) && !k.confined(d, tier) {
				continue
			}
			f := *d
			f.left = d.Pods[:n]
			if strict {
				f.apart, f.most = nil, k.never(d)
			}
			free, wholes[&f] = append(free, &f), d
		}
		for d, v := range k.proveTier(free, wholes, tier, strict) {
			if before, known := k.worth[d]; !known || v < before {
				k.worth[d] = v
			}
		}
	}
}

// boughtFor returns for how many pods of each demand new nodes were bought.
// Those of demands that found all their places on existing nodes are worth
// nothing to the bound.
func (k *Packer) boughtFor() map[*demand]int {
	out := map[*demand]int{}
	for _, b := range k.bins {
		for _, t := range b.take {
			for _, m := range k.demands[t.demand].parts() {
				out[m.of] += m.pods * t.pods * b.count
			}
		}
	}
	return out
}

// wanders reports whether no tier confines d: a plan may buy nodes for it in any
// that suits it.
func (k *Packer) wanders(d *demand) bool {
	for tier := range k.tiers() {
		if k.confined(d, tier) {
			return false
		}
	}
	return true
}

// proveTier returns what a pod of each demand is worth in a tier, by the whole it
// stands for: by what pods were worth when nodes were bought for them or, anew,
// by what they are worth without rules.
func (k *Packer) proveTier(free []*demand, wholes map[*demand]*demand, tier fit.Range, anew bool) map[*demand]float64 {
	out := map[*demand]float64{}
	q := k.problem(free, tier)
	if k.partial || k.policy.RelaxMinValues && k.demanding(tier) { // plans are feasible that no node of the problem stands for
		for _, f := range q.demands {
			out[wholes[f]] = 0
		}
		return out
	}
	values := make([]float64, len(q.demands))
	for i, f := range q.demands {
		values[i] = f.value
		anew = anew || !f.valued
	}
	if anew {
		values = cover.Values(&q.Problem, cover.Unlimited(), k.budget)
	}
	for i, v := range cover.Prove(&q.Problem, values, k.budget) {
		out[wholes[q.demands[i]]] = v
	}
	return out
}

// never returns how many pods of d share a new node at most in any plan: 1 when
// they keep from each other; 0 = any number.
func (k *Packer) never(d *demand) int {
	if len(d.Shape.HostPorts) > 0 || k.topology.Excludes(d.kind, d.kind) {
		return 1
	}
	return 0
}

// confined reports whether no feasible plan buys a node for d outside the
// tier: no heavier tier suits it, and no limit and no rule between pods could push
// it to a lighter tier or to where it only goes at last.
func (k *Packer) confined(d *demand, tier fit.Range) bool {
	pools, all := k.catalogue.Pools, len(k.catalogue.Offers)
	limited := func(r fit.Range) bool {
		return slices.ContainsFunc(pools[r.From:r.To], func(p fit.Pool) bool { return len(p.Limits) > 0 })
	}
	if k.softened && (d.firm || limited(fit.Range{To: len(pools)})) {
		return false
	}
	if k.catalogue.Fits(d.Demand, fit.Range{To: pools[tier.From].Offers.From}) {
		return false
	}
	if !limited(tier) && k.topology.Free(d.kind) {
		return true
	}
	return !k.catalogue.Fits(d.Demand, fit.Range{From: pools[tier.To-1].Offers.To, To: all}) && !k.avoids(d.Shape)
}

// bound returns a price no feasible plan for the placed pods can beat, given
// that pods planned before stay where they were planned. Preferences that the
// plan grants may lead pods of their kinds to pools of less weight.
//
// Proof. Let v_i be the worth of a pod of demand i. The pods on a new node are
// worth at most what the node costs, whatever they are; the pods on an existing
// node are worth at most what the room there is, by the Lagrangian bound, and so
// are those on a node that takes from a reservation, which has so many of them.
// So for every feasible plan  cost ≥ Σ worth of its pods − Σ worth on existing
// nodes − Σ worth above the price on reserved nodes
// ≥ Σ_i n_i·v_i − Σ_nodes worth of the room − Σ_reservations worth of the room
// above the price.
func (k *Packer) bound(granted map[int]topology.Wishes) model.Price {
	k.prove(granted)
	sum := 0.0
	for _, d := range k.demands {
		sum += k.worth[d] * float64(d.loose-len(d.left))
	}
	for i := range k.nodes {
		if sum <= 0 {
			return 0
		}
		n := &k.nodes[i]
		sum -= k.roomWorth(k.freeAtStart[i], func(d *demand, pods int) int {
			if !n.Takes(d.Shape) {
				return 0
			}
			return pods
		})
	}
	sum -= k.reservationsWorth()
	// Rounding must not lift the sum above the truth; and as all prices are
	// multiples of the quantum, so is the optimum.
	quantum := float64(k.catalogue.Quantum)
	return k.catalogue.Quantum * model.Price(math.Ceil((max(sum, 0)*(1-1e-9)-1e-3)/quantum))
}

// roomWorth is an upper bound on the worth of the pods that could use what is
// free on a node. Of pods of a demand that fit there, it takes how many takes
// says.
func (k *Packer) roomWorth(free model.Resources, takes func(d *demand, fit int) int) float64 {
	var sack lp.Knapsack
	for _, d := range k.demands {
		most := fit.Room(free, d.Shape.Requests, d.loose-len(d.left))
		if k.worth[d] == 0 || most == 0 {
			continue
		}
		if most = takes(d, most); most == 0 {
			continue
		}
		var request []float64
		for _, r := range k.wanted {
			request = append(request, float64(d.Shape.Requests.At(r))/float64(max(free.At(r), 1)))
		}
		sack.Add(k.worth[d], float64(most), request)
	}
	if len(sack.Value) == 0 {
		return 0
	}
	for _, r := range k.wanted {
		sack.Room = append(sack.Room, float64(min(free.At(r), 1)))
	}
	worth, _ := sack.Relax(make([]float64, len(sack.Room)))
	return worth
}
