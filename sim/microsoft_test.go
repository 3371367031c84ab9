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

var azureSeeds = flag.Int("azure-seeds", 12, "how many seeds to draw scripts from for the provider for AKS")

// TestAzureSeeds holds trials with the provider for AKS, on subscriptions in
// memory.
func TestAzureSeeds(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for i := range *azureSeeds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			t.Parallel()
			if v := onAzure(t, server, script.Draw(seed)); v.Err != nil {
				t.Errorf("seed %d: %v\nto run it: go test ./sim -run TestAzureSeeds -azure-seeds=1 -first=%d -transcript", seed, v.Err, seed)
			}
		})
	}
}

// onAzure holds a trial of a script that was drawn.
func onAzure(t *testing.T, server *store.Server, s *script.Script) trial.Verdict {
	t.Helper()
	c := trial.Trial{Server: server, Script: s, Microsoft: trial.TranslateToAzure(s)}
	if *verbose {
		c.Transcript = os.Stdout
	}
	return c.Hold(t)
}
