// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

// stalled is a roll-out during which no instance becomes a node for a while.
const stalled = `
run 45m rest 45m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general budgets=2 after=Never
pods web count=6 cpu=1500m mem=1Gi
at 5m edit general label=v2
fault no-join from=5m for=35m
`

// wasteful is consolidation during which no instance becomes a node for a while.
const wasteful = `
run 2h10m rest 45m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
type m8 cpu=8 mem=32Gi price=0.30 zones=a,b
pool general budgets=2 after=30s
pods web count=4 cpu=1700m mem=1Gi
at 5m scale web 1
fault no-join from=5m for=2h
`

// halting looks at what is launched in pool general to replace nodes meanwhile.
type halting struct {
	began, ends time.Duration
	least, most int             // claims there should be
	nodes       string          // their types at the end
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
		return fmt.Errorf("replacements were not halted")
	case len(h.launched) < h.least || len(h.launched) > h.most:
		return fmt.Errorf("%d machines were launched in vain, want %d to %d", len(h.launched), h.least, h.most)
	case conditions.Get(pool, v1.RolloutHaltedCondition) != nil || !conditions.IsTrue(pool, v1.RolledOutCondition):
		return fmt.Errorf("it did not end: %v", pool.Status.Conditions)
	}
	return h.shape(s)
}

// shape fails when the nodes at the end are others than they should be.
func (h *halting) shape(s *sim.Seen) error {
	nodes := &corev1.NodeList{}
	if err := s.API.Client("test").List(context.Background(), nodes); err != nil {
		return err
	}
	var kinds []string
	for i := range nodes.Items {
		kinds = append(kinds, nodes.Items[i].Labels[corev1.LabelInstanceTypeStable])
	}
	if got := strings.Join(kinds, " "); got != h.nodes {
		return fmt.Errorf("it ends with nodes %s, want %s", got, h.nodes)
	}
	return nil
}

// Replacements whose instances never join are halted, for drift and to save, tried
// by one instance now and then, and go on by themselves once instances join again.
func TestStalledReplacements(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		script string
		halting
	}{
		"drift":         {stalled, halting{ends: 40 * time.Minute, least: 3, most: 4, nodes: "m2 m2 m2 m2 m2 m2"}}, // the two that the budget allows, then one at a time
		"consolidation": {wasteful, halting{ends: 125 * time.Minute, least: 4, most: 7, nodes: "m2"}},              // every ten minutes without a halt
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/seed-%d", name, seed), func(t *testing.T) {
				s, err := script.Parse(fmt.Sprintf("seed %d\n%s", seed, of.script))
				if err != nil {
					t.Fatal(err)
				}
				h := of.halting
				h.began, h.launched = 5*time.Minute, map[string]bool{}
				if v := (trial.Trial{Server: server, Script: s, Witness: &h}).Hold(t); v.Err != nil {
					t.Error(v.Err)
				}
			})
		}
	}
}
