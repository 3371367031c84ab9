package solve_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// situations runs f on many random situations, each with its seed as name.
func situations(t *testing.T, n uint64, f func(t *testing.T, s *model.Snapshot)) {
	for seed := range n {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			s := solvetest.Situation(rand.New(rand.NewPCG(seed, 7)))
			f(t, s)
			if t.Failed() {
				var b strings.Builder
				if err := scenario.Print(&b, s); err == nil {
					t.Logf("the situation:\n%s", b.String())
				}
			}
		})
	}
}

// TestPlansAreValid holds every plan against the independent checker: each pod
// once, nothing overfull, taints and labels respected on whatever machine a
// launch becomes, limits and budgets never exceeded, bound below cost.
func TestPlansAreValid(t *testing.T) {
	situations(t, 1000, func(t *testing.T, s *model.Snapshot) {
		for _, wrong := range solvetest.Check(s, solve.Decide(s, model.DefaultPolicy())) {
			t.Error(wrong)
		}
	})
}

// TestNobodyIsLeftBehind compares with the twin: without limits, a pod stays
// pending exactly when no node, old or new, could take it alone.
func TestNobodyIsLeftBehind(t *testing.T) {
	situations(t, 600, func(t *testing.T, s *model.Snapshot) {
		for i := range s.Pools {
			s.Pools[i].Limits = nil
		}
		plan := solve.Decide(s, model.DefaultPolicy())
		for _, p := range s.Pending {
			pending := slices.ContainsFunc(plan.Verdicts, func(v model.Verdict) bool { return v.Shape == p.Shape })
			if launchable := solvetest.Launchable(s, p.Shape); pending && launchable {
				t.Errorf("%s is pending, but a new node would take it", p.Shape.Key)
			}
		}
	})
}

// TestBoundIsTrue compares the bound with the cheapest plan there is, found by
// trying all of them.
func TestBoundIsTrue(t *testing.T) {
	tried := 0
	situations(t, 1200, func(t *testing.T, s *model.Snapshot) {
		s.Nodes, s.Pools = nil, s.Pools[:1]
		s.Pools[0].Limits = nil
		s.Pending = s.Pending[:1]
		s.Pending[0].Pods = s.Pending[0].Pods[:min(5, len(s.Pending[0].Pods))]
		plan := solve.Decide(s, model.DefaultPolicy())
		best, ok := solvetest.Cheapest(s)
		if !ok {
			return
		}
		tried++
		if plan.Bound > best {
			t.Errorf("bound %d, but a plan costs %d", plan.Bound, best)
		}
		if plan.Cost < best {
			t.Errorf("cost %d, but no plan costs less than %d", plan.Cost, best)
		}
		if plan.Cost > best*21/20 {
			t.Errorf("cost %d, the best plan costs %d", plan.Cost, best)
		}
	})
	if tried < 300 {
		t.Errorf("only %d situations had a plan", tried)
	}
}

// TestPlansAreRepeatable decides the same situation again, with its lists in
// another order and on another number of processors.
func TestPlansAreRepeatable(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	situations(t, 150, func(t *testing.T, s *model.Snapshot) {
		first := solve.Decide(s, model.DefaultPolicy())
		runtime.GOMAXPROCS(1 + rand.IntN(4))
		slices.Reverse(s.Pools)
		slices.Reverse(s.Pending)
		if again := solve.Decide(s, model.DefaultPolicy()); !reflect.DeepEqual(placements(first), placements(again)) || first.Cost != again.Cost || first.Bound != again.Bound {
			t.Errorf("first %+v\nagain %+v", first, again)
		}
	})
}

func placements(p *model.Plan) []string {
	var out []string
	for _, x := range p.Placements {
		out = append(out, x.Pod.Key()+" on "+x.Node)
	}
	for _, l := range p.Launches {
		out = append(out, fmt.Sprint(l.Pool, l.Types, l.Zone, l.CapacityType, l.Pods))
	}
	slices.Sort(out)
	return out
}
