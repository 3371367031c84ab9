package pack

import (
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/lp"
)

// proof is what a tier's market proved before anything was bought in it.
type proof struct {
	tier  fit.Range
	worth map[*demand]float64 // of one pod, such that no node of the tier is worth more than it costs
}

// prove remembers what pods are worth in the tier, for the demands that every
// feasible plan buys in it.
func (k *Packer) prove(m *market, tier fit.Range) {
	p := proof{tier: tier, worth: map[*demand]float64{}}
	for row, d := range m.demands {
		members := d.members
		if !d.block() {
			members = []*demand{d}
		}
		for _, d := range members {
			if k.confined(d, tier) {
				p.worth[d] = m.values[row] / max(m.ratio, 1)
			}
		}
	}
	k.proofs = append(k.proofs, p)
}

// proveFree proves anew as if there were no rules between pods but that some
// never share a node with their like. A plan that keeps all rules is one of
// those the proof is about.
func (k *Packer) proveFree() {
	limits, groups := k.limits, k.groups
	defer func() { k.limits, k.groups = limits, groups }()
	k.proofs, k.limits, k.groups = nil, newLimits(k.catalogue), nil
	var free []*demand
	of := map[*demand]*demand{}
	for _, d := range k.demands {
		if n := d.loose - len(d.left); d.whole == nil && n > 0 {
			f := *d
			f.left, f.members, f.apart, f.most = d.Pods[:n], nil, nil, k.never(d)
			free, of[&f] = append(free, &f), d
		}
	}
	for tier := range k.tiers() {
		m := k.open(free, tier, func(c candidate) float64 { return c.price })
		if !m.restart() {
			continue
		}
		m.optimise(math.MaxInt)
		if !k.proveTier(m, tier) {
			continue
		}
		last := &k.proofs[len(k.proofs)-1]
		worth := map[*demand]float64{}
		for f, v := range last.worth {
			worth[of[f]] = v
		}
		last.worth = worth
	}
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
// that pods planned before stay where they were planned.
//
// Proof. Let v_i be the worth of a pod of demand i in the tier it must be
// bought in, zero if there is none. The pods on a new node are worth at most
// what the node costs, whatever they are; the pods on an existing node are
// worth at most what the room there is, by the Lagrangian bound, and so are
// those on a node that takes from a reservation, which has so many of them. So
// for every feasible plan  cost ≥ Σ worth of its pods − Σ worth on existing
// nodes − Σ worth above the price on reserved nodes
// ≥ Σ_i n_i·v_i − Σ_nodes worth of the room − Σ_reservations worth of the room
// above the price.
func (k *Packer) bound() model.Price {
	if k.stricter() {
		k.proveFree()
	}
	sum := 0.0
	for _, p := range k.proofs {
		for _, d := range k.demands {
			sum += p.worth[d] * float64(d.loose-len(d.left))
		}
	}
	for i := range k.nodes {
		if sum <= 0 {
			return 0
		}
		for _, p := range k.proofs {
			n := &k.nodes[i]
			sum -= k.roomWorth(p, k.freeAtStart[i], func(d *demand, pods int) int {
				if !n.Takes(d.Shape) {
					return 0
				}
				return pods
			})
		}
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
func (k *Packer) roomWorth(p proof, free model.Resources, takes func(d *demand, fit int) int) float64 {
	var sack lp.Knapsack
	for _, d := range k.demands {
		most := fit.Room(free, d.Shape.Requests, d.loose-len(d.left))
		if p.worth[d] == 0 || most == 0 {
			continue
		}
		if most = takes(d, most); most == 0 {
			continue
		}
		var request []float64
		for _, r := range k.wanted {
			request = append(request, float64(d.Shape.Requests.At(r))/float64(max(free.At(r), 1)))
		}
		sack.Add(p.worth[d], float64(most), request)
	}
	if len(sack.Value) == 0 {
		return 0
	}
	for _, r := range k.wanted {
		sack.Room = append(sack.Room, float64(min(free.At(r), 1)))
	}
	return sack.Relax(make([]float64, len(sack.Room)))
}
