package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

// stalled is a roll-out during which no machine becomes a node for a while.
const stalled = `
run 45m rest 45m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general budgets=2 after=Never
pods web count=6 cpu=1500m mem=1Gi
at 5m edit general label=v2
fault no-join from=5m for=35m
`

// halting looks at what the roll-out of pool general launches meanwhile.
type halting struct {
	began, ends time.Duration
	launched    map[string]bool // claims made between
	halted      bool
}

func (*halting) Name() string { return "halting" }

func (h *halting) Check(s *sim.Seen) error {
	if at := s.Now.Sub(s.Started); at < h.began || at >= h.ends {
		return nil
	}
	for _, c := range s.Changes {
		switch o := c.New.(type) {
		case *v1.NodeClaim:
			if c.Old == nil {
				h.launched[o.Name] = true
			}
		case *v1.NodePool:
			h.halted = h.halted || conditions.IsTrue(o, v1.RolloutHaltedCondition)
		}
	}
	return nil
}

func (h *halting) End(s *sim.Seen) error {
	pool := &v1.NodePool{}
	if err := s.API.Client("test").Get(context.Background(), client.ObjectKey{Name: "general"}, pool); err != nil {
		return err
	}
	switch {
	case !h.halted:
		return fmt.Errorf("the roll-out was not halted")
	case len(h.launched) < 3 || len(h.launched) > 4:
		return fmt.Errorf("%d machines were launched in vain, want the two that the budget allows and one or two attempts", len(h.launched))
	case conditions.Get(pool, v1.RolloutHaltedCondition) != nil || !conditions.IsTrue(pool, v1.RolledOutCondition):
		return fmt.Errorf("the roll-out did not end: %v", pool.Status.Conditions)
	}
	return nil
}

// A roll-out whose machines never join is halted, tried by one machine now and
// then, and goes on by itself once machines join again.
func TestStalledRollout(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			s, err := script.Parse(fmt.Sprintf("seed %d\n%s", seed, stalled))
			if err != nil {
				t.Fatal(err)
			}
			h := &halting{began: 5 * time.Minute, ends: 40 * time.Minute, launched: map[string]bool{}}
			if v := (trial.Trial{Server: server, Script: s, Witness: h}).Hold(t); v.Err != nil {
				t.Error(v.Err)
			}
		})
	}
}
