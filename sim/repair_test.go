// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

// recovering is nodes that recover when a repair is due, behind pods that must
// not be evicted, while caches lag. Each spell ends a little later than the one
// before.
const recovering = `
run 60m rest 40m
gates NodeRepair
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general budgets=0:Empty,0:Underutilized,0:Drifted after=Never
pods web count=8 cpu=1500m mem=1Gi protect=true
at 4m sicken general 1 600s
at 15m sicken general 1 601s
at 26m sicken general 1 602s
at 37m sicken general 1 604s
at 48m sicken general 1 608s
fault stale every=30 lag=10s object=NodeClaim
fault conflict every=9 call=patch object=NodeClaim
fault crash-after every=20 call=patch object=NodeClaim
`

// repairsSeen counts the claims that repair deletes, by the controller that does:
// node.health, or disruption.
type repairsSeen struct{ deleted map[string]int }

func (*repairsSeen) Name() string { return "repairs" }

func (r *repairsSeen) Check(s *sim.Seen) error {
	for _, c := range s.Calls {
		if c.Kind != "NodeClaim" || c.Verb != "delete" || c.Err != nil {
			continue
		}
		claim := store.Find[*v1.NodeClaim](s.API, "", c.Name)
		if c.By == "node.health" || claim != nil && conditions.IsTrue(claim, v1.DisruptionReasonCondition) {
			r.deleted[c.By]++
		}
	}
	return nil
}

func (r *repairsSeen) End(s *sim.Seen) error {
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.DeletionTimestamp != nil {
			return fmt.Errorf("claim %s is still being deleted", c.Name)
		}
	}
	return nil
}

// TestRepairEnds has nodes recover while their claims are being deleted: no
// node is left tainted and draining.
func TestRepairEnds(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	deleted := map[string]int{}
	for seed := range uint64(4) {
		s, err := script.Parse(fmt.Sprintf("seed %d", seed+1) + recovering)
		if err != nil {
			t.Fatal(err)
		}
		w := &repairsSeen{deleted: deleted}
		if v := (trial.Trial{Server: server, Script: s, Witness: w}).Hold(t); v.Err != nil {
			t.Errorf("seed %d: %v", seed+1, v.Err)
		}
	}
	for _, controller := range []string{"node.health", "disruption"} {
		if deleted[controller] == 0 {
			t.Errorf("no node was repaired by %s", controller)
		}
	}
	t.Logf("nodes were repaired: %v", deleted)
}
