// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"time"

	"karpenter/model"
)

// What disruption is worth, as package drain has it.
const (
	slowStart        = 5 * time.Minute
	launchTime       = 10 * time.Minute
	launchDisruption = 1
)

// Owed returns what a command for Underutilized must save per hour: what moving the
// pods of its nodes and launching nodes is worth, over the time in which it must be
// paid back, and a least share of what it replaces.
func Owed(s *model.Snapshot, p model.Policy, cmd *model.Command) float64 {
	c := newChecker(s, p)
	if cmd.Cost <= 0 {
		return 0 // no one knows
	}
	owed, share, dearest := 0.0, 0.0, 0.0
	for _, target := range cmd.Nodes {
		n := c.node(target.Node)
		pool := c.pool(n.Pool)
		if pool == nil {
			continue
		}
		payback, threshold := p.Payback, p.Hysteresis
		if v := pool.Aims.Payback; v != nil {
			payback = *v
		}
		if v := pool.Aims.Threshold; v != nil {
			threshold = *v
		}
		share += threshold * float64(n.Price)
		if payback <= 0 || pool.Disruption.Policy == model.Balanced && pool.Aims.Payback == nil {
			continue
		}
		if d := &n.Disruption; !d.PodsEnd.IsZero() {
			now := s.Now.Truncate(time.Minute) // decisions go by minutes
			payback = min(payback, max(time.Minute, d.PodsEnd.Sub(now), sinceOf(d.Since, now)))
		}
		pod := c.podPrice(n.Pool) / payback.Hours()
		dearest = max(dearest, pod)
		owed += pod * (n.Disruption.Cost + float64(n.Disruption.Startup)/float64(slowStart))
		if len(cmd.Launches) > 0 {
			owed += float64(n.Price) * launchTime.Hours() / payback.Hours()
		}
	}
	if len(cmd.Launches) == 0 {
		return owed
	}
	return max(share, owed+dearest*launchDisruption*float64(len(cmd.Launches)))
}

// sinceOf is how long something has been there; 0 = not known.
func sinceOf(t, now time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return now.Sub(t)
}

// podPrice is what an hour of the pool costs for each plain pod and each node.
func (c *checker) podPrice(pool string) float64 {
	price, weight := 0.0, 0.0
	for _, n := range c.s.Nodes {
		if n.Pool == pool && n.Claim != "" {
			price, weight = price+float64(n.Price), weight+n.Disruption.Cost
		}
	}
	if price <= 0 || weight <= 0 {
		return 0
	}
	return price / weight
}
