// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/pack"
)

// spotPool is an instance type in a zone.
type spotPool struct{ name, zone string }

// advised replaces the spot nodes that the provider advises to leave, those first
// that it told of first, each by itself: if their pods find places on other nodes,
// or on new ones in spot pools without such a node, for little more than the node
// costs. For budgets and metrics they are drifted.
//
// Why nothing goes round: pods that were moved recently are not moved again, and
// a replacement costs so little more that consolidation would not undo it.
func (r *round) advised() {
	if r.policy.RebalancePremium == nil {
		return
	}
	var sites []int
	risky := map[spotPool]bool{}
	for i := range r.given.Nodes {
		n := &r.s.Nodes[i]
		if n.Disruption.Advised.IsZero() {
			continue
		}
		risky[spotPoolOf(n)] = true
		if r.mayLeave(i) {
			sites = append(sites, i)
		}
	}
	if len(sites) == 0 {
		return
	}
	slices.SortStableFunc(sites, func(a, b int) int {
		return r.s.Nodes[a].Disruption.Advised.Compare(r.s.Nodes[b].Disruption.Advised)
	})
	r.close(func(n *model.Node) bool {
		return r.leaves(n) || !n.Disruption.Drifted.IsZero() || risky[spotPoolOf(n)]
	})
	for _, i := range sites {
		n := &r.s.Nodes[i]
		if !r.allowed(model.Drifted, i) {
			r.overBudget(n, model.Drifted)
		} else if why := r.anchored(i); why != "" {
			r.keep(n, model.Drifted, model.ByUse, why)
		} else {
			r.leave(i, risky)
		}
	}
}

// spotPoolOf returns the spot pool of the node; the zero one if it is no spot node.
func spotPoolOf(n *model.Node) spotPool {
	if ct, _ := n.Labels.Value(model.LabelCapacityType); ct != capacitySpot {
		return spotPool{}
	}
	name, _ := n.Labels.Value(model.LabelInstanceType)
	zone, _ := n.Labels.Value(model.LabelZone)
	return spotPool{name, zone}
}

// mayLeave reports whether the node of the site may be replaced as the provider advises,
// budgets not asked, and notes why not.
func (r *round) mayLeave(site int) bool {
	n := &r.s.Nodes[site]
	pool, ok := r.pools[n.Pool]
	if !ok || n.Claim == "" || !n.Initialized || n.Deleting || r.taken[n.Name] || r.s.Pools[pool].Static != nil ||
		spotPoolOf(n) == (spotPool{}) || len(n.Movable) == 0 {
		return false
	}
	cause, why := model.ByNode, cmp.Or(n.Disruption.Blocked, n.Disruption.Held)
	if got, receives := r.receiving[n.Name]; why == "" && receives && got.keeps(model.Drifted) {
		cause, why = model.ByUse, use(got)
	}
	if why == "" && len(r.whole(site)) > 1 {
		why = r.asWhole(site, "the cloud sent a rebalance recommendation for this one")
	}
	if why == "" && n.Disruption.Fresh {
		cause, why = model.ByPolicy, "pods on it were moved within the last hour"
	}
	if why == "" {
		why = unplaceable(n)
	}
	if why != "" {
		r.keep(n, model.Drifted, cause, why)
	}
	return why == ""
}

// leave replaces the node, if that costs little and leads elsewhere.
func (r *round) leave(site int, risky map[spotPool]bool) {
	n := &r.s.Nodes[site]
	// More than consolidation must save could be saved again.
	most := n.Price + model.Price(float64(n.Price)*min(*r.policy.RebalancePremium, r.hysteresis(n)))
	pools := r.s.Pools
	r.s.Pools = elsewhere(pools, risky)
	t, pending := r.try(question{sites: []int{site}, most: most}, r.policy)
	c := model.Command{
		Reason: model.Drifted, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}},
		Moves: t.Moves, Cost: n.Price, Savings: n.Price - t.Cost,
	}
	why := ""
	switch {
	case t.Dear || t.Cost > most:
		why = fmt.Sprintf("the cloud sent a rebalance recommendation, but another place would cost more than $%s/h", dollars(most))
	case len(t.Left) > 0:
		why = "the cloud sent a rebalance recommendation, but " + homeless(t)
	default:
		c.Launches, why = r.bound(t, most)
	}
	r.s.Pools = pools
	if why != "" {
		r.keep(n, model.Drifted, model.ByPrice, why)
		return
	}
	r.accept(c, []int{site}, pending)
}

// hysteresis returns the least share that replacing the node must save.
func (r *round) hysteresis(n *model.Node) float64 {
	if own := r.s.Pools[r.pools[n.Pool]].Aims.Threshold; own != nil {
		return *own
	}
	return r.policy.Hysteresis
}

// elsewhere returns the pools without the spot offerings of the spot pools.
func elsewhere(pools []model.Pool, risky map[spotPool]bool) []model.Pool {
	out := slices.Clone(pools)
	for i := range out {
		out[i].Types = slices.Clone(out[i].Types)
		for j, t := range out[i].Types {
			if !slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return risky[spotPool{t.Name, o.Zone}] }) {
				continue
			}
			less := *t
			less.Offerings = slices.Clone(t.Offerings)
			for k := range less.Offerings {
				if o := &less.Offerings[k]; o.CapacityType == capacitySpot && risky[spotPool{t.Name, o.Zone}] {
					o.Available = false
				}
			}
			out[i].Types[j] = &less
		}
	}
	return out
}

// bound returns the launches of the trial as those that become nothing else than
// what costs at most most together and was looked at: in the zones and of the
// capacity types they are planned in. Or it returns why there is no such thing.
func (r *round) bound(t *pack.Trial, most model.Price) ([]model.Launch, string) {
	launches := slices.Clone(t.Launches)
	for i := range launches {
		l := &launches[i]
		if len(l.MinValues) > 0 {
			return nil, "the cloud sent a rebalance recommendation, but minValues would have to be relaxed"
		}
		limit := l.Price + (most-t.Cost)/model.Price(len(launches))
		var menu []pack.Choice
		for c := range t.Menu(i).Choices(l.CapacityType, l.Zone) {
			if c.Price <= limit {
				menu = append(menu, c)
			}
		}
		slices.SortStableFunc(menu, func(a, b pack.Choice) int { return cmp.Compare(a.Price, b.Price) })
		l.Requirements = l.Requirements.And(model.NewRequirement(model.LabelZone, model.In, l.Zone))
		if why := r.settle(l, menu); why != "" {
			return nil, why
		}
	}
	return launches, ""
}
