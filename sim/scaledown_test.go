// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"testing"
	"time"

	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
	"karpenter/sim/upstream"
)

// TestScaleDown has Deployments lose 30% of their pods at once. Within the first half
// hour, consolidation comes to rest sooner than by upstream's rules, with fewer pods
// evicted. Pods that it has moved then rest for an hour, so what it ends at is
// compared after three: at most 1% above.
func TestScaleDown(t *testing.T) {
	text, err := os.ReadFile("testdata/scaledown.script")
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	upstreams := trial.Trial{Planner: &upstream.Rules{}, Lawless: true} // the laws are ours
	ours, theirs := scaleDown(t, server, s, trial.Trial{}), scaleDown(t, server, s, upstreams)
	if ours.after > theirs.after {
		t.Errorf("the last change comes %s after the pods have gone, by upstream's rules %s", ours.after, theirs.after)
	}
	if ours.evicted > theirs.evicted {
		t.Errorf("%d pods are evicted, by upstream's rules %d", ours.evicted, theirs.evicted)
	}
	s.Rest = 3 * time.Hour
	ours, theirs = scaleDown(t, server, s, trial.Trial{}), scaleDown(t, server, s, upstreams)
	if ours.rate > 1.01*theirs.rate {
		t.Errorf("it ends at $%.4f/h, by upstream's rules at $%.4f/h", ours.rate, theirs.rate)
	}
}

// scaled is what came of the pods' going.
type scaled struct {
	after   time.Duration // from then to the last change
	evicted int
	rate    float64 // dollars per hour at rest
}

func scaleDown(t *testing.T, server *store.Server, s *script.Script, c trial.Trial) scaled {
	t.Helper()
	gone := s.Events[0].At.After
	ledger := trial.NewLedger(gone)
	c.Server, c.Script, c.Calm, c.Steps = server, s, true, 2_000_000
	c.Witness = ledger
	v := c.Hold(t)
	if v.Err != nil {
		t.Errorf("after %s: %v", v.Lasted, v.Err)
	}
	out := scaled{ledger.Last - gone, ledger.Evictions, ledger.Rate}
	t.Logf("%s after the pods have gone the last change: %d pods evicted, %d instances launched, %v nodes removed; $%.4f/h then",
		out.after, out.evicted, ledger.Launches, ledger.Taken, out.rate)
	return out
}
