// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"testing"
)

// TestPlanGap: a plan that costs nothing has no gap, and one without a bound
// does not claim to be optimal.
func TestPlanGap(t *testing.T) {
	for _, c := range []struct {
		cost, bound Price
		want        float64
	}{
		{0, 0, 0}, {Dollar, Dollar, 0}, {3 * Dollar, 2 * Dollar, 0.5}, {Dollar, 0, math.Inf(1)},
	} {
		if got := (&Plan{Cost: c.cost, Bound: c.bound}).Gap(); got != c.want {
			t.Errorf("cost %d, bound %d: got a gap of %v, want %v", c.cost, c.bound, got, c.want)
		}
	}
}
