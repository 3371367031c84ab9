// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/solve/solvetest"
	"karpenter/solve/work"
)

// TestRollback takes drafts back to where they were before and after the nodes
// there are were filled. A plan made from there must be the plan that would have
// been made without the detour.
func TestRollback(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	changed := 0
	for range 300 {
		s := solvetest.Everything().Situation(rng)
		fresh := func() *draft {
			p := model.DefaultPolicy()
			return newDraft(newProblem(problem{terms: terms{policy: p}, memory: &Memory{}, budget: work.New(int64(p.Work))}, s), lessons{})
		}
		want := planOf(fresh(), false)

		x := fresh()
		start := x.mark()
		first := planOf(x, false)
		x.rollback(start)
		x.known, x.prices = lessons{}, map[*demand]price{}
		if diff := cmp.Diff(want, planOf(x, true)); diff != "" {
			t.Fatalf("after a rollback another plan is made (-want +got):\n%s", diff)
		}
		x.rollback(start)
		x.known, x.prices = lessons{}, map[*demand]price{}
		if diff := cmp.Diff(want, planOf(x, false)); diff != "" {
			t.Fatalf("after the second rollback to one mark another plan is made (-want +got):\n%s", diff)
		}
		if len(first.Placements)+len(first.Launches) > 0 {
			changed++
		}
	}
	if changed == 0 {
		t.Error("no plan placed a pod")
	}
}

// planOf finishes a draft in which nothing is planned yet. With a detour it goes
// back once to where the nodes there are were filled.
func planOf(x *draft, detour bool) *model.Plan {
	x.keepPlanned()
	domains{x}.settleAll()
	if detour {
		filled := x.mark()
		everywhere(x)
		x.known.add(repair{x}.verify())
		finish(x)
		x.rollback(filled)
		x.known, x.prices = lessons{}, map[*demand]price{}
	}
	everywhere(x)
	x.known.add(repair{x}.verify())
	finish(x)
	out := &outcome{plan: &model.Plan{}}
	report{x}.fill(out)
	return out.plan
}
