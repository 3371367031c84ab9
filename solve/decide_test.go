// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/scenario/scenariotest"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestSpec runs the numbered cases of the specs of scheduling and of
// disruption. Whatever a case expects, its plan is held against the independent
// checker.
func TestSpec(t *testing.T) {
	for _, dir := range []string{"spec20", "spec40", "spec46", "spec48"} {
		t.Run(dir, func(t *testing.T) { cases(t, "testdata/"+dir) })
	}
}

func cases(t *testing.T, dir string) {
	scenariotest.Run(t, dir, func(s *model.Snapshot, p model.Policy) *model.Plan {
		plan := solve.Decide(s, p)
		for _, wrong := range append(solvetest.Check(s, p, plan), solvetest.Addable(s, p, plan, true)...) {
			t.Errorf("%s:\n%s", wrong, scenario.Text(s, plan))
		}
		return plan
	})
}
