package sim_test

import (
	"fmt"
	"testing"

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
pool general budgets=0 after=Never
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

// repairsSeen counts the claims that repair deletes.
type repairsSeen struct{ deleted int }

func (*repairsSeen) Name() string { return "repairs" }

func (r *repairsSeen) Check(s *sim.Seen) error {
	for _, c := range s.Calls {
		if c.By == "node.health" && c.Verb == "delete" && c.Err == nil {
			r.deleted++
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
	deleted := 0
	for seed := range uint64(4) {
		s, err := script.Parse(fmt.Sprintf("seed %d", seed+1) + recovering)
		if err != nil {
			t.Fatal(err)
		}
		w := &repairsSeen{}
		if v := (trial.Trial{Server: server, Script: s, Witness: w}).Hold(t); v.Err != nil {
			t.Errorf("seed %d: %v", seed+1, v.Err)
		}
		deleted += w.deleted
	}
	if deleted == 0 {
		t.Error("no node was repaired")
	}
	t.Logf("%d nodes were repaired", deleted)
}
