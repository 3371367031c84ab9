// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	first = flag.Uint64("hostile", 0, "first seed of tests with hostile values; 0 draws one")
	most  = flag.Int("hostile-runs", 0, "runs of tests with hostile values, a seed each; 0 = as many as usual")
)

// Runs runs the test with fresh seeds, as often as usual unless flags say otherwise. It returns
// how often, for tests that want to have met enough. A run of a minute panics.
func Runs(t *testing.T, usual int, run func(t *testing.T, seed uint64)) int {
	t.Helper()
	seed, runs := *first, *most
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	if runs == 0 {
		runs = usual
	}
	t.Logf("seeds from %d", seed)
	for i := range uint64(runs) {
		t.Run(fmt.Sprint("seed ", seed+i), func(t *testing.T) {
			watchdog := time.AfterFunc(time.Minute, func() { panic("hostile values take a minute: " + t.Name()) })
			defer watchdog.Stop()
			run(t, seed+i)
		})
		if t.Failed() {
			t.Fatalf("to repeat, in this folder: go test . -run %s -args -hostile=%d -hostile-runs=1", t.Name(), seed+i)
		}
	}
	return runs
}
