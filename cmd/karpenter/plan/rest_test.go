package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"karpenter/cmd/karpenter/plan"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve/solvetest"
)

// TestRest looks ahead in the situations of the documents and in random ones: it
// comes to an end, every node is accounted for, and there is a first round just
// when the plan changes something.
func TestRest(t *testing.T) {
	all := situations(t)
	for seed := range 60 {
		draw := solvetest.Draw{Bound: true, Crowd: seed%2 == 0}
		s := draw.Situation(rand.New(rand.NewPCG(uint64(seed), 11)))
		all[fmt.Sprint("seed ", seed)] = scenario.Situation{Snapshot: s, Policy: model.DefaultPolicy()}
	}
	moved, still := 0, 0
	for name, situation := range all {
		d := decider(situation.Policy)
		d.ToRest = true
		r := plan.Of(situation.Snapshot, d)
		stay := 0
		for i := range situation.Snapshot.Nodes {
			if n := &situation.Snapshot.Nodes[i]; n.Claim != "" && !n.Deleting {
				stay++
			}
		}
		rest := r.Rest
		if rest.Unfinished {
			t.Errorf("%s: no end after %d rounds", name, rest.Rounds)
		}
		if want := stay + rest.Launched - rest.TakenAway; rest.Nodes != want {
			t.Errorf("%s: %d nodes at rest; %d that stay, %d launched and %d taken away make %d", name, rest.Nodes, stay, rest.Launched, rest.TakenAway, want)
		}
		if moves := len(r.Launches)+len(r.Commands) > 0; moves != (rest.Rounds > 0) {
			t.Errorf("%s: %d rounds, and the plan changes something: %v", name, rest.Rounds, moves)
		}
		if rest.Rounds == 0 {
			still++
			if rest.Total != r.After {
				t.Errorf("%s: at rest it is %+v, after the plan, which does nothing, %+v", name, rest.Total, r.After)
			}
		}
		if rest.Rounds > 1 {
			moved++
		}
		if rest.Evictions < r.Evictions {
			t.Errorf("%s: %d evictions in all, %d of them in the first round", name, rest.Evictions, r.Evictions)
		}
	}
	if moved < 10 || still < 10 {
		t.Errorf("%d situations of more than one round and %d of none prove little", moved, still)
	}
}
