// SPDX-License-Identifier: Apache-2.0

package ours

import (
	"karpenter/bench/judge"
	"karpenter/bench/workload"
	"karpenter/cmd/karpenter/explain"
	"karpenter/model"
)

// Disrupt takes a Snapshot and decides, as Decide does.
func (e *Engine) Disrupt() error { return e.Decide() }

// Step returns which nodes the last decision removes, and where their pods go.
func (e *Engine) Step() judge.Step {
	s := judge.Step{Plan: judge.Plan{Placed: map[string][]string{}}}
	for i := range e.plan.Commands {
		c := &e.plan.Commands[i]
		for _, n := range c.Nodes {
			s.Removed = append(s.Removed, n.Node)
		}
		for _, p := range c.Moves {
			s.Plan.Placed[p.Node] = append(s.Plan.Placed[p.Node], p.Pod.Key())
		}
		for k := range c.Launches {
			s.Plan.Claims = append(s.Plan.Claims, claim(&c.Launches[k]))
		}
	}
	return s
}

// Apply takes in that machines are gone, new ones are there, and pods have moved
// to others.
func (e *Engine) Apply(c workload.Change) error {
	for _, m := range c.Gone {
		for _, p := range m.Bound {
			e.world.DeletePod(p.Namespace, p.Name)
		}
		e.world.DeleteNode(m.Node.Name)
		e.world.DeleteClaim(m.Claim.Name)
	}
	for i := range c.Added {
		e.takeInMachine(&c.Added[i])
	}
	for _, p := range c.Moved {
		e.world.SetPod(e.convert.Pod(p))
	}
	return nil
}

// ClusterBound returns what no cluster for the running pods can undercut, in
// dollars per hour: the bound of a plan for all of them from scratch.
func (e *Engine) ClusterBound() float64 {
	place := func(s *model.Snapshot) *model.Plan { return e.planner.Place(s, model.DefaultPolicy()) }
	return explain.OfCluster(e.world.Snapshot(workload.Start()), place).Bound
}
