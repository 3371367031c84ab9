// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"

	"karpenter/model"
)

// balance scores the offer for the pools that ask for it, and returns why it is
// not good enough for one of them.
func (r *round) balance(o *offer) (model.Cause, string) {
	c := &o.command
	costs, disruptions := map[int]float64{}, map[int]float64{}
	var pools []int
	for _, i := range o.sites {
		n := &r.s.Nodes[i]
		pool := r.pools[n.Pool]
		if _, known := disruptions[pool]; !known {
			pools = append(pools, pool)
		}
		costs[pool] += float64(n.Price)
		disruptions[pool] += n.Disruption.Cost
	}
	for _, pool := range pools {
		if r.s.Pools[pool].Disruption.Policy != model.Balanced {
			continue
		}
		savings := float64(c.Savings)
		if c.Cost > 0 {
			savings *= costs[pool] / float64(c.Cost)
		}
		c.Scores = append(c.Scores, score(r.s.Pools[pool].Name, r.total(pool), total{savings, disruptions[pool]}))
	}
	s := o.lowest()
	if s.Pool == "" {
		return "", ""
	}
	return model.ByPolicy, fmt.Sprintf(
		"NodePool %q is Balanced: it would save %.2g%% of its cost and disrupt %.2g%% of it, a score of %.2f below %.2f",
		s.Pool, 100*s.Savings, 100*s.Disruption, s.Value, leastScore)
}

// score relates what a command saves of a pool's cost to what it disrupts of it.
func score(pool string, all, part total) model.Score {
	s := model.Score{Pool: pool}
	if all.price <= 0 || all.disruption <= 0 {
		return s
	}
	s.Savings, s.Disruption = part.price/all.price, part.disruption/all.disruption
	switch {
	case part.price <= 0:
	case part.disruption <= 0:
		s.Value = math.Inf(1)
	default:
		s.Value = s.Savings / s.Disruption
	}
	return s
}

// total returns what all nodes of the pool add up to, those that stay included.
func (r *round) total(pool int) total {
	if r.totals == nil {
		r.totals = make([]total, len(r.s.Pools))
		for i := range r.given.Nodes {
			n := &r.given.Nodes[i]
			if at, ok := r.pools[n.Pool]; ok && n.Claim != "" {
				r.totals[at].price += float64(n.Price)
				r.totals[at].disruption += n.Disruption.Cost
			}
		}
	}
	return r.totals[pool]
}
