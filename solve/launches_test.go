// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestBoundIsTrueForLists compares bound and cost with the cheapest way there
// is, found by trying all of them, where nodes are launched as one of many types
// or from reservations.
func TestBoundIsTrueForLists(t *testing.T) {
	for name, draw := range map[string]solvetest.Draw{
		"minValues": {MinValues: true}, "reserved": {Reserved: true}, "both": {MinValues: true, Reserved: true},
	} {
		t.Run(name, func(t *testing.T) {
			tried, tight := 0, 0
			situations(t, draw, 250, func(s *model.Snapshot) []string {
				if len(s.Pools) == 0 || len(s.Pending) == 0 {
					return nil
				}
				s.Nodes, s.Pools = nil, s.Pools[:1]
				s.Pools[0].Limits = nil
				s.Pending = s.Pending[:1]
				s.Pending[0].Pods = s.Pending[0].Pods[:min(5, len(s.Pending[0].Pods))]
				best, ok := solvetest.CheapestLaunches(s)
				plan := solve.Decide(s, model.DefaultPolicy())
				switch {
				case !ok || len(plan.Verdicts) > 0:
					if ok != (len(plan.Verdicts) == 0) {
						return []string{fmt.Sprintf("planned: %v, possible: %v", len(plan.Verdicts) == 0, ok)}
					}
					return nil
				case plan.Bound > best:
					return []string{fmt.Sprintf("bound %d, but a plan costs %d", plan.Bound, best)}
				case plan.Cost < best:
					return []string{fmt.Sprintf("cost %d, but no plan costs less than %d", plan.Cost, best)}
				case plan.Cost > best*11/10:
					return []string{fmt.Sprintf("cost %d, the best plan costs %d", plan.Cost, best)}
				}
				tried++
				if plan.Bound == best {
					tight++
				}
				return nil
			})
			t.Logf("%d situations, bound tight in %d", tried, tight)
			if tried < 50 {
				t.Errorf("only %d situations had a plan", tried)
			}
		})
	}
}

// TestBoundWithoutHostname: a node without the label takes any number of pods that keep off each
// other, as for the scheduler, and the bound knows.
func TestBoundWithoutHostname(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(`type small cpu=2 mem=8Gi zones=zone-1 spot=0.02
type big cpu=8 mem=32Gi zones=zone-1 spot=0.08
pool general types=small,big
node n1 pool=general type=big zone=zone-1 ct=spot
pods web-1..5 cpu=2 labels=app=web anti="host of app=web"
`))
	if err != nil {
		t.Fatal(err)
	}
	s.Nodes[0].Labels = s.Nodes[0].Labels.Without(model.LabelHostname)
	plan := solve.Decide(s, model.DefaultPolicy())
	if len(plan.Placements) < 2 || plan.Bound > plan.Cost {
		t.Errorf("%d pods on the node, cost %v, bound %v", len(plan.Placements), plan.Cost, plan.Bound)
	}
}
