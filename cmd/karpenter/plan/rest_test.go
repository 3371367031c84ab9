// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"karpenter/cmd/karpenter/plan"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve/solvetest"
)

// TestRest looks ahead in the situations of the documents and in random ones: it
// comes to an end, every node is accounted for, and there is a first round when
// the plan changes something.
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
		if want := stay + rest.Launched - rest.Removed; rest.Nodes != want {
			t.Errorf("%s: %d nodes at rest; %d that stay, %d launched and %d removed make %d", name, rest.Nodes, stay, rest.Launched, rest.Removed, want)
		}
		if len(r.Launches)+len(r.Commands) > 0 && rest.Rounds == 0 {
			t.Errorf("%s: no rounds, and the plan changes something", name)
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

// TestRestWaits: nodes that have not been quiet for long enough will have been.
func TestRestWaits(t *testing.T) {
	const text = `type small cpu=2 mem=8Gi zones=a on-demand=0.1
type large cpu=8 mem=32Gi zones=a on-demand=0.4
pool general budgets=1
node a pool=general type=large zone=a ct=on-demand
pods web-1 cpu=1 on=a
`
	situation, err := scenario.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	d := decider(model.DefaultPolicy())
	d.ToRest = true
	if r := plan.Of(situation, d); r.WouldChange || r.Rest.Rounds != 1 || r.Rest.Cost != 0.1 {
		t.Errorf("changes now: %v; at rest %+v", r.WouldChange, r.Rest)
	}
}

// TestRestOfBudgetsInUse: a rollout in progress continues when the node that
// uses up the budget is gone, and a note reports this assumption.
func TestRestOfBudgetsInUse(t *testing.T) {
	const text = `type old cpu=2 mem=8Gi zones=a on-demand=0.1
type new cpu=2 mem=8Gi zones=a arch=arm64 on-demand=0.1
pool general requires="arch=arm64" budgets=0 consuming=1
node a pool=general type=old zone=a ct=on-demand deleting
node b pool=general type=old zone=a ct=on-demand drifted=1h
pods web-1 cpu=1 on=b
`
	situation, err := scenario.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	d := decider(model.DefaultPolicy())
	d.ToRest = true
	r := plan.Of(situation, d)
	if len(r.Commands) > 0 || r.Rest.Removed != 1 || r.Rest.Launched != 1 || r.Rest.Evictions != 1 {
		t.Errorf("%d commands now; at rest %+v", len(r.Commands), r.Rest)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "budget of NodePool general for Drifted is assumed to be used up") {
		t.Errorf("notes: %s", notes)
	}
}
