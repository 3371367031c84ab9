// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"karpenter/model"
)

// Crowd is more of a workload, or of the vCPUs of a NodePool, in one spot pool than
// the setting or the NodePool asks for.
type Crowd struct {
	Workload string  `json:"workload,omitempty"` // namespace/name; without it, it is the vCPUs of the NodePool
	NodePool string  `json:"nodePool"`
	SpotPool string  `json:"spotPool"` // "m5.large in us-west-2a"
	Share    float64 `json:"share"`
	Most     float64 `json:"mostAskedFor"`

	// CostPerHour is what spreading it would cost more, in dollars. Without it, no
	// launch that is planned can be changed for that.
	CostPerHour *float64 `json:"costPerHour,omitempty"`
}

// AllCrowds returns the crowds of the plan.
func AllCrowds(plan *model.Plan) []Crowd {
	var out []Crowd
	for i := range plan.Crowds {
		c := &plan.Crowds[i]
		one := Crowd{Workload: c.Workload, NodePool: c.Pool, SpotPool: c.In, Share: c.Share, Most: c.Most}
		if c.Cost != nil {
			cost := c.Cost.Dollars()
			one.CostPerHour = &cost
		}
		out = append(out, one)
	}
	return out
}

// crowdOf returns the crowd that the pod is part of; nil = none.
func crowdOf(plan *model.Plan, p *model.Pod) *Crowd {
	for _, c := range AllCrowds(plan) {
		if p.Workload != "" && c.Workload == p.Namespace+"/"+p.Workload {
			return &c
		}
	}
	return nil
}

// What names what is crowded.
func (c Crowd) What() string {
	if c.Workload == "" {
		return "vCPUs of the NodePool"
	}
	return c.Workload
}

// Cost says what spreading it would cost.
func (c Crowd) Cost() string {
	if c.CostPerHour == nil {
		return "cannot be spread"
	}
	return dollars(*c.CostPerHour) + " more"
}

// Text says what is crowded, and what spreading it would cost.
func (c Crowd) Text() string {
	cost := "no node that is launched now can be in another spot pool"
	if c.CostPerHour != nil {
		cost = "to spread it would cost " + dollars(*c.CostPerHour) + " more"
	}
	return fmt.Sprintf("%.0f%% of %s is in the spot pool %s, at most %.0f%% is asked for: %s", 100*c.Share, c.What(), c.SpotPool, 100*c.Most, cost)
}
