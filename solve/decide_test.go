package solve_test

import (
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/scenario/scenariotest"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestSpec runs the numbered cases of the scheduling spec. Whatever a case
// expects, its plan is held against the independent checker.
func TestSpec(t *testing.T) {
	scenariotest.Run(t, "testdata/spec20", func(s *model.Snapshot, p model.Policy) *model.Plan {
		plan := solve.Decide(s, p)
		for _, wrong := range append(solvetest.Check(s, p, plan), solvetest.Addable(s, p, plan, true)...) {
			t.Errorf("%s:\n%s", wrong, scenario.Text(s, plan))
		}
		return plan
	})
}
