// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestCeilingsHold compares what is known of candidates while values of items change with
// what a pricer finds that knows nothing yet.
func TestCeilingsHold(t *testing.T) {
	problems(t, 200, 8, func(p *Problem, rng *rand.Rand) error {
		pricerOf := func() *pricer {
			pr := newItemPricer(p, nil)
			for l := range pr.values {
				pr.values[l] = rng.Float64()
			}
			return pr
		}
		old := pricerOf()
		for round := range 20 {
			for l := range old.values {
				switch rng.IntN(4) {
				case 0:
					old.values[l] *= 0.8 + 0.4*rng.Float64()
				case 1:
					old.values[l] = float64(rng.IntN(2)) * rng.Float64() // nothing, or anything
				}
			}
			old.revalue(old.values)
			fresh := pricerOf()
			copy(fresh.values, old.values)
			for c := range p.Candidates {
				want := fresh.limit(c, 0)
				enough := rng.Float64() * 2 * want
				if got := old.limit(c, enough); got < want*(1-1e-9) && got > enough || got <= enough && want > enough*(1+1e-9) {
					return fmt.Errorf("round %d, candidate %d: worth at most %g, asked whether that is more than %g: %g", round, c, want, enough, got)
				}
			}
		}
		return nil
	})
}
