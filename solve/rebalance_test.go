// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// rebalancing is the default policy with spot nodes replaced that the provider
// recommends to leave.
func rebalancing() model.Policy {
	p := model.DefaultPolicy()
	premium := 0.5 // more than consolidation must save, which is what counts then
	p.RebalancePremium = &premium
	return p
}

// TestRebalanceLeadsElsewhere carries out plans for spot nodes that the provider
// recommends to leave, as it goes on to recommend for every node of these spot
// pools: the commands are valid, lead to no spot pool with a recommendation, cost
// little more whatever their launches become, and soon there are none.
func TestRebalanceLeadsElsewhere(t *testing.T) {
	replaced := 0
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 60, func(s *model.Snapshot) []string {
				rng := rand.New(rand.NewPCG(3, 4))
				risky := map[[2]string]bool{}
				for i := range s.Nodes {
					if n := &s.Nodes[i]; !n.Disruption.Advised.IsZero() {
						risky[spotOf(n)] = true
					}
				}
				moves := map[string]int{}
				for range rounds {
					plan := solve.Decide(s, rebalancing())
					wrong := solvetest.Check(s, rebalancing(), plan)
					for i := range plan.Commands {
						if c := &plan.Commands[i]; advisedOf(s, c) {
							replaced++
							wrong = append(wrong, leadsBack(s, c)...)
							for pod := range solvetest.Places(&model.Plan{Placements: c.Moves, Launches: c.Launches}) {
								if moves[pod]++; moves[pod] > patience {
									wrong = append(wrong, fmt.Sprintf("%s is moved %d times", pod, moves[pod]))
								}
							}
						}
					}
					if len(wrong) > 0 {
						return append(wrong, scenario.Text(s, plan))
					}
					if len(plan.Commands)+len(plan.Launches)+len(plan.Placements) == 0 {
						return nil
					}
					s = solvetest.Apply(rng, s, plan)
					s.Nodes = slices.Clone(s.Nodes)
					for i := range s.Nodes {
						if n := &s.Nodes[i]; risky[spotOf(n)] {
							n.Disruption.Advised = s.Now
						}
					}
				}
				return []string{fmt.Sprintf("not at rest after %d rounds:\n%s", rounds, scenario.Text(s, solve.Decide(s, rebalancing())))}
			})
		})
	}
	if replaced == 0 {
		t.Error("no node was replaced")
	}
}

// spotOf returns the instance type and the zone of a spot node; nothing for others.
func spotOf(n *model.Node) (out [2]string) {
	if ct, _ := n.Labels.Value(model.LabelCapacityType); ct == model.Spot {
		out[0], _ = n.Labels.Value(model.LabelInstanceType)
		out[1], _ = n.Labels.Value(model.LabelZone)
	}
	return out
}

// advisedOf reports whether the command is for a recommendation alone.
func advisedOf(s *model.Snapshot, c *model.Command) bool {
	return c.Reason == model.Drifted && !slices.ContainsFunc(c.Nodes, func(t model.Target) bool {
		n := nodeNamed(s, t.Node)
		return n == nil || !n.Disruption.Drifted.IsZero()
	})
}

func nodeNamed(s *model.Snapshot, name string) *model.Node {
	i := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Nodes[i]
}

// leadsBack returns what is wrong with a command for a recommendation.
func leadsBack(s *model.Snapshot, c *model.Command) []string {
	var wrong []string
	risky := map[[2]string]bool{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Disruption.Advised.IsZero() {
			risky[spotOf(n)] = true
		}
	}
	for _, m := range c.Moves {
		if n := nodeNamed(s, m.Node); risky[spotOf(n)] && spotOf(n) != [2]string{} {
			wrong = append(wrong, fmt.Sprintf("%s goes to %s in %v, which is recommended to be left", m.Pod.Key(), n.Name, spotOf(n)))
		}
	}
	worst := model.Price(0)
	for i := range c.Launches {
		l, most := &c.Launches[i], model.Price(0)
		zones, _ := l.Requirements.Get(model.LabelZone)
		for _, p := range s.Pools {
			for _, t := range p.Types {
				for _, o := range t.Offerings {
					if p.Name != l.Pool || !o.Available || !slices.Contains(l.Types, t.Name) || !slices.Contains(l.CapacityTypes, o.CapacityType) || !zones.Has(o.Zone) {
						continue
					}
					most = max(most, o.Price)
					if o.CapacityType == model.Spot && risky[[2]string{t.Name, o.Zone}] {
						wrong = append(wrong, fmt.Sprintf("a launch may become %s in %s, which is recommended to be left", t.Name, o.Zone))
					}
				}
			}
		}
		worst += most
	}
	if limit := c.Cost + model.Price(float64(c.Cost)*model.DefaultPolicy().Hysteresis); worst > limit {
		wrong = append(wrong, fmt.Sprintf("%s may be replaced at %d, more than %d", c.Nodes[0].Node, worst, limit))
	}
	return wrong
}
