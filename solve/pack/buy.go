// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/solve/fit"
)

// tierShare is the least part of the budget that is left which one tier of several
// may use.
const tierShare = 0.2

// buyAll launches new nodes, of the heaviest pools first. It reports false when the
// draft is abandoned.
func buyAll(x *draft) bool {
	x.takeSurvey()
	parts := x.tierParts()
	for i, tier := range x.tiers {
		whole := x.allot(parts[i])
		ok := buyFor(x, tier, x.demands)
		if whole(); !ok {
			return false
		}
		if x.overspends() {
			x.abandoned = whileWishing
			return false
		}
	}
	return true
}

// tierParts returns the part of the budget that is left then for each tier: as many
// of the demands have it as their heaviest, of those that have it or a lighter one.
func (x *draft) tierParts() []float64 {
	parts, later := make([]float64, len(x.tiers)), 0.0
	for _, d := range x.demands {
		if i := x.heaviest(d); i >= 0 && len(d.left) > 0 {
			parts[i]++
		}
	}
	for i, n := range slices.Backward(parts) {
		later += n
		parts[i] = max(n/max(later, 1), tierShare)
	}
	if len(parts) > 0 {
		parts[len(parts)-1] = 1
	}
	return parts
}

// buyFor launches new nodes of the tier's pools for those of the demands that have pods
// left. Demands that have no pool in common are no concern of each other. It reports false
// when the trial is abandoned.
func buyFor(x *draft, tier tier, demands []*demand) bool {
	all := x.divideByPools(tier, demands)
	later := 0
	for _, some := range all {
		later += len(some)
	}
	for _, some := range all {
		whole := x.allot(float64(len(some)) / float64(later))
		ok := (&market{draft: x, tier: tier}).buyAgain(some)
		if whole(); !ok {
			return false
		}
		later -= len(some)
	}
	return true
}

// divideByPools divides those of the demands that have pods left, and that some pool of the
// tier could launch nodes for. Two that have a pool in common, or pools that take from one
// reservation, are not divided.
func (x *draft) divideByPools(tier tier, demands []*demand) [][]*demand {
	if len(demands) == 1 && len(demands[0].left) > 0 {
		return [][]*demand{demands}
	}
	first := make([]int, len(x.catalogue.Pools)) // of the pools that are not divided from it
	for pool := range first {
		first[pool] = pool
	}
	of := func(pool int) int {
		for first[pool] != pool {
			pool = first[pool]
		}
		return pool
	}
	join := func(offers fit.OfferSet) int {
		at := -1
		for pool := tier.From; pool < tier.To; pool++ {
			switch {
			case !offers.Any(x.catalogue.Pools[pool].Offers):
			case at < 0:
				at = of(pool)
			default:
				a, b := at, of(pool)
				at = min(a, b)
				first[max(a, b)] = at
			}
		}
		return at
	}
	for _, id := range x.catalogue.Reservations() {
		if x.prepaid[id] > 0 {
			join(x.catalogue.Reserved(id))
		}
	}
	var open []*demand
	var at []int
	for _, d := range demands {
		if len(d.left) == 0 {
			continue
		}
		x.budget.Spend(tier.To - tier.From)
		if pool := join(d.Offers); pool >= 0 {
			open, at = append(open, d), append(at, pool)
		}
	}
	var out [][]*demand
	position := map[int]int{}
	for i, d := range open {
		pool := of(at[i])
		k, ok := position[pool]
		if !ok {
			k = len(out)
			position[pool], out = k, append(out, nil)
		}
		out[k] = append(out[k], d)
	}
	return out
}

// buyAgain is buy, and then once more without what pools with minValues demand, where a plan
// may relax that.
func (m *market) buyAgain(open []*demand) bool {
	if !m.buy(open) {
		return false
	}
	m.relaxing = m.policy.RelaxMinValues && m.demanding(m.tier)
	if !m.relaxing {
		return true
	}
	open = slices.DeleteFunc(slices.Clone(open), func(d *demand) bool { return len(d.left) == 0 })
	return len(open) == 0 || m.buy(open)
}

// buy launches new nodes for the demands, from reservations and besides. It reports false when the
// trial is abandoned.
func (m *market) buy(open []*demand) bool {
	if len(m.prepaidOffers()) == 0 {
		return m.buyUnreserved(open)
	}
	before := m.mark()
	m.spendReservations(open)
	if !m.buyUnreserved(open) {
		return false
	}
	m.regroup(open, before)
	return true
}

// buyUnreserved launches new nodes that take from no reservation. It reports false when the trial is
// abandoned.
func (m *market) buyUnreserved(open []*demand) bool {
	if !m.limits.any(m.tier) {
		return m.coverAll(open)
	}
	before := m.mark()
	if !m.coverWithin(open) {
		return false
	}
	return !m.stranded(open) || m.budget.Late() || m.coverInTurn(open, before)
}
