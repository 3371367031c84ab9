// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

var amazonSeeds = flag.Int("amazon-seeds", 12, "how many seeds to draw scripts from for the AWS provider")

// TestAmazonSeeds holds trials with the AWS provider, on accounts in memory.
func TestAmazonSeeds(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for i := range *amazonSeeds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			t.Parallel()
			if v := onAmazon(t, server, script.Draw(seed)); v.Err != nil {
				t.Errorf("seed %d: %v\nto run it: go test ./sim -run TestAmazonSeeds -amazon-seeds=1 -first=%d -transcript", seed, v.Err, seed)
			}
		})
	}
}

// onAmazon holds a trial of a script that was drawn.
func onAmazon(t *testing.T, server *store.Server, s *script.Script) trial.Verdict {
	t.Helper()
	c := trial.Trial{Server: server, Script: s, Amazon: trial.Translate(s)}
	if *verbose {
		c.Transcript = os.Stdout
	}
	return c.Hold(t)
}
