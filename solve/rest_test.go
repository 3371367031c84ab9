// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestRestIsCheap carries out plans for clusters in which nothing but prices
// keeps nodes, and compares what they cost at rest with what the same pods
// would cost on new nodes alone.
func TestRestIsCheap(t *testing.T) {
	tried, dear, sum := 0, 0, 0.0
	from := cmp.Or(*first, drawn())
	for seed := from; seed < from+200**seeds; seed++ {
		s := calm(solvetest.Draw{Bound: true, Crowd: true}.Situation(rand.New(rand.NewPCG(seed, 7))))
		fresh := *s
		fresh.Nodes = nil
		for i := range s.Nodes {
			fresh.Pending = append(fresh.Pending, s.Nodes[i].Movable...)
		}
		anew := solve.Decide(&fresh, model.DefaultPolicy())
		if len(anew.Verdicts) > 0 || anew.Cost == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 8))
		for range rounds {
			plan := solve.Decide(s, model.DefaultPolicy())
			if len(plan.Commands) == 0 {
				break
			}
			s = solvetest.Apply(rng, s, plan)
		}
		ratio := float64(solvetest.Spent(s)) / float64(anew.Cost)
		tried++
		sum += ratio
		if ratio > 1.15 {
			dear++
		}
	}
	t.Logf("%d clusters from seed %d: on average %.3f of the price of planning anew, %d above 1.15", tried, from, sum/float64(tried), dear)
	most := float64(tried) / 20
	if sum/float64(tried) > 1 || float64(dear) > most+3*math.Sqrt(most) { // one in twenty, and what chance adds to that
		t.Errorf("at rest %d clusters cost %.3f of planning anew, %d of them more than 1.15; seed %d", tried, sum/float64(tried), dear, from)
	}
}

// calm leaves of a situation what can be consolidated at will: on-demand nodes
// with their pods, in pools that allow everything.
func calm(s *model.Snapshot) *model.Snapshot {
	s.Pending = nil
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Static, p.Unavailable, p.Limits, p.Weight, p.Usage = nil, "", nil, 0, nil
		p.Disruption = model.Disruption{Allowed: map[model.Reason]int{model.Empty: 100, model.Underutilized: 100}}
		for _, kind := range p.Types {
			kind.Offerings = slices.DeleteFunc(kind.Offerings, func(o model.Offering) bool { return o.CapacityType != model.OnDemand })
		}
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n model.Node) bool {
		_, known := n.Labels.Value(model.LabelZone)
		return n.Claim == "" || n.Deleting || !known
	})
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Initialized = true
		n.Disruption = model.NodeDisruption{Consolidatable: true, Cost: n.Disruption.Cost, Empty: len(n.Movable) == 0}
	}
	return s
}

// TestLittleWorkRemovesSomeNodes gives a decision a quarter of the work it takes to examine
// every node: what is examined must also be carried out, or a large cluster never gets smaller.
func TestLittleWorkRemovesSomeNodes(t *testing.T) {
	var b strings.Builder
	b.WriteString("type m cpu=4 mem=8Gi pods=20 zones=a on-demand=0.1\npool p types=m budgets=1000\n")
	for i := range 300 {
		fmt.Fprintf(&b, "node n%d pool=p type=m zone=a ct=on-demand consolidatable\npods a%d cpu=500m on=n%d\n", i, i, i)
	}
	s, err := scenario.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	decide := func(work int) (commands int, all bool) {
		p := model.DefaultPolicy()
		p.Work = work
		plan := solve.Decide(s, p)
		return len(plan.Commands), !slices.ContainsFunc(plan.Stays, func(s model.Stay) bool { return s.Cause == model.Unexamined })
	}
	enough := 1 << 20
	for all := false; !all; {
		enough *= 2
		_, all = decide(enough)
	}
	if commands, all := decide(enough / 4); all || commands == 0 {
		t.Errorf("%d steps, of %d that it takes to examine all nodes: %d commands, all examined: %t; want some commands, not all examined", enough/4, enough, commands, all)
	}
}
