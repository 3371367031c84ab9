// SPDX-License-Identifier: Apache-2.0

package pack_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// TestFewerNodes plans drawn Deployments with and without the premium for fewer
// nodes: with it there are no more nodes, all pods have one, and the plan costs at
// most the premium more. Over all draws at least a quarter of the nodes is saved.
func TestFewerNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	cheap, few := 0, 0
	for range 24 {
		s := deployments(t, rng)
		p := model.DefaultPolicy()
		p.NodeCountPremium = 0
		cheapest := solve.Decide(s, p)
		p.NodeCountPremium = 0.01
		plan := solve.Decide(s, p)
		if len(plan.Launches) > len(cheapest.Launches) || len(plan.Verdicts) > 0 {
			t.Errorf("%d launches and %d verdicts, %d launches without the premium", len(plan.Launches), len(plan.Verdicts), len(cheapest.Launches))
		}
		if most := float64(cheapest.Cost) * (1 + p.NodeCountPremium); float64(plan.Cost) > most {
			t.Errorf("the plan costs $%f, the cheapest $%f", plan.Cost.Dollars(), cheapest.Cost.Dollars())
		}
		cheap, few = cheap+len(cheapest.Launches), few+len(plan.Launches)
	}
	if 4*few > 3*cheap {
		t.Errorf("%d nodes of %d are left", few, cheap)
	}
}

// deployments draws 30 Deployments without rules and a family of types whose
// prices grow with their size, but not quite alike.
func deployments(t *testing.T, rng *rand.Rand) *model.Snapshot {
	t.Helper()
	var b strings.Builder
	b.WriteString("pool general\n")
	for i := range 6 {
		cpu := 2 << i
		for j, ratio := range []int{2, 4, 8} {
			price := 0.02 * float64(cpu) * (1 + 0.3*float64(j)) * (1 + 0.02*rng.Float64())
			fmt.Fprintf(&b, "type t%d-%d cpu=%d mem=%dGi pods=110 zones=a on-demand=a:%.5f\n", cpu, ratio, cpu, ratio*cpu, price)
		}
	}
	for i := range 30 {
		fmt.Fprintf(&b, "pods app%02d-1..%d cpu=%dm mem=%dMi\n", i, 20+rng.IntN(100), 100+50*rng.IntN(38), 128+64*rng.IntN(120))
	}
	s, err := scenario.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
