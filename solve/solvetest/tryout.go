// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"slices"

	"karpenter/model"
)

// Deletable names the nodes that could be removed by themselves while the
// plan does nothing: it tries every way to share their pods out over the other
// nodes. Use it for a handful of pods and nodes.
func Deletable(s *model.Snapshot, p model.Policy) []string {
	var out []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		reason := model.Underutilized
		if len(n.Movable) == 0 {
			reason = model.Empty
		}
		cmd := model.Command{Reason: reason, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Cost: n.Price, Savings: n.Price}
		c := newChecker(s, p)
		if pool := c.pool(n.Pool); pool == nil || c.objection(n, reason) != "" || pool.Disruption.Allowed[reason] < 1 {
			continue
		}
		var pods []model.Pod
		for _, m := range n.Movable {
			pods = append(pods, m.Pods...)
		}
		if shareOut(s, p, &cmd, pods) {
			out = append(out, n.Name)
		}
	}
	return out
}

// Approves reports whether a plan of nothing but the command, which takes one
// node away, would do, with some caution: daemons may be still to come, and
// nodes; and drifted ones are to go. What Balanced pools think of it is worked out first.
func Approves(s *model.Snapshot, p model.Policy, cmd *model.Command) bool {
	c := newChecker(s, p)
	c.cautious = true
	n := c.node(cmd.Nodes[0].Node)
	pool := c.pool(n.Pool)
	if pool == nil || pool.Disruption.Allowed[cmd.Reason] < len(cmd.Nodes) {
		return false
	}
	if pool.Disruption.Policy == model.Balanced && cmd.Reason == model.Underutilized {
		score := c.scoreOf(n)
		score.Value *= float64(cmd.Savings) / float64(max(cmd.Cost, 1))
		cmd.Scores = []model.Score{score}
	}
	c.command(0, cmd)
	if len(c.wrong) == 0 && c.roomy(cmd) {
		c.together(&model.Plan{Commands: []model.Command{*cmd}})
	}
	return len(c.wrong) == 0
}

// roomy reports whether nodes still have room for daemons that are to come, once
// the pods of a node are there, and whether these may stay.
func (c *checker) roomy(cmd *model.Command) bool {
	sums := map[string]model.Resources{}
	for _, m := range cmd.Moves {
		if !c.node(m.Node).Disruption.Drifted.IsZero() {
			c.fail("%s has drifted", m.Node)
		}
		for _, p := range c.node(cmd.Nodes[0].Node).Movable {
			if slices.ContainsFunc(p.Pods, func(o model.Pod) bool { return o.Key() == m.Pod.Key() }) {
				sums[m.Node] = sums[m.Node].Plus(p.Shape.Requests)
			}
		}
	}
	for name, sum := range sums {
		if !sum.Fits(spare(c.node(name), c.s.Daemons)) {
			c.fail("%s is too full for its daemons", name)
		}
	}
	return len(c.wrong) == 0
}

// Dearest is the most the launches of a command may come to cost.
func Dearest(s *model.Snapshot, cmd *model.Command) model.Price {
	c, sum := newChecker(s, model.DefaultPolicy()), model.Price(0)
	for i := range cmd.Launches {
		sum += dearest(c.pool(cmd.Launches[i].Pool), &cmd.Launches[i])
	}
	return sum
}

// Pin leaves of what a launch may become the cheapest type, as the first of
// reserved, spot and on-demand that it may be.
func Pin(s *model.Snapshot, l *model.Launch) {
	c := newChecker(s, model.DefaultPolicy())
	for _, ct := range []string{model.Reserved, model.Spot, model.OnDemand} {
		if slices.Contains(l.CapacityTypes, ct) {
			l.CapacityTypes, l.CapacityType = []string{ct}, ct
			break
		}
	}
	l.Price = -1
	for _, o := range outcomes(c.pool(l.Pool), l) {
		if o.offer.Available && (l.Price < 0 || o.offer.Price < l.Price) {
			l.Type, l.Zone, l.Price = o.kind.Name, o.offer.Zone, o.offer.Price
		}
	}
	l.Types = []string{l.Type}
}

// scoreOf is the score of taking the node away for nothing.
func (c *checker) scoreOf(n *model.Node) model.Score {
	cost, disruption := 0.0, 0.0
	for _, o := range c.s.Nodes {
		if o.Pool == n.Pool && o.Claim != "" {
			cost, disruption = cost+float64(o.Price), disruption+o.Disruption.Cost
		}
	}
	s := model.Score{Pool: n.Pool}
	if cost > 0 && disruption > 0 && n.Price > 0 {
		s.Value = float64(n.Price) / cost / (n.Disruption.Cost / disruption)
	}
	return s
}

// shareOut reports whether the pods have places that pass every check.
func shareOut(s *model.Snapshot, p model.Policy, cmd *model.Command, pods []model.Pod) bool {
	if len(pods) == 0 {
		return Approves(s, p, cmd)
	}
	for _, n := range s.Nodes {
		if n.Name == cmd.Nodes[0].Node || n.Deleting {
			continue
		}
		next := *cmd
		next.Moves = append(slices.Clone(cmd.Moves), model.Placement{Pod: pods[0], Node: n.Name})
		if shareOut(s, p, &next, pods[1:]) {
			return true
		}
	}
	return false
}
