package solve_test

import (
	"testing"

	"karpenter/scenario/scenariotest"
	"karpenter/solve"
)

// TestSpec runs the numbered cases of the scheduling spec.
func TestSpec(t *testing.T) { scenariotest.Run(t, "testdata/spec20", solve.Decide) }
