// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"

	"karpenter/model"
)

// balance scores the offer for the pools that ask for it, and returns why it is
// not good enough for one of them.
func (ask *inquiry) balance(o *offer) (model.Cause, string) {
	c := &o.command
	costs, disruptions := map[int]float64{}, map[int]float64{}
	var pools []int
	for _, i := range o.sites {
		n := &ask.s.Nodes[i]
		pool := ask.pools[n.Pool]
		if _, known := disruptions[pool]; !known {
			pools = append(pools, pool)
		}
		costs[pool] += float64(n.Price)
		disruptions[pool] += n.Disruption.Cost
	}
	for _, pool := range pools {
		if ask.s.Pools[pool].Disruption.Policy != model.Balanced {
			continue
		}
		savings := float64(c.Savings)
		if c.Cost > 0 {
			savings *= costs[pool] / float64(c.Cost)
		}
		c.Scores = append(c.Scores, score(ask.s.Pools[pool].Name, ask.total(pool), total{savings, disruptions[pool]}))
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
