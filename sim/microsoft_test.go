// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/sim"
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

// stranded counts the NodeClaims that were made, and that were abandoned because their instances
// became no nodes.
type stranded struct{ made, gone int }

func (*stranded) Name() string { return "stranded" }

func (c *stranded) Check(s *sim.Seen) error {
	for _, change := range s.Changes {
		was, _ := change.Old.(*v1.NodeClaim)
		now, _ := change.New.(*v1.NodeClaim)
		switch {
		case was == nil && now != nil:
			c.made++
		case was != nil && now == nil && !conditions.IsTrue(was, v1.RegisteredCondition):
			c.gone++
		}
	}
	return nil
}

func (c *stranded) End(*sim.Seen) error {
	if c.gone != 2 || c.made != 5 {
		return fmt.Errorf("%d NodeClaims were made and %d abandoned, want 5 and 2", c.made, c.gone)
	}
	return nil
}

// TestAzureInstancesThatNeverJoin: Azure makes instances that never become nodes. They are deleted
// after their time, others take their place, and in the end all pods run, with nothing left in
// Azure that the invariants forbid.
func TestAzureInstancesThatNeverJoin(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for _, vms := range []bool{false, true} {
		t.Run(fmt.Sprint("VMs ", vms), func(t *testing.T) {
			s, err := script.Parse(`seed 1
run 40m rest 30m
type m2 cpu=2 mem=8Gi price=0.096 zones=a,b,c
pool general after=Never
pods web count=3 cpu=1200m mem=1Gi
fault no-join times=2
`)
			if err != nil {
				t.Fatal(err)
			}
			c := trial.Trial{Server: server, Script: s, Witness: &stranded{}, Microsoft: trial.TranslateToAzure(s)}
			c.Microsoft.VMs = vms
			if *verbose {
				c.Transcript = os.Stdout
			}
			if v := c.Hold(t); v.Err != nil {
				t.Errorf("after %s: %v", v.Lasted, v.Err)
			}
		})
	}
}
