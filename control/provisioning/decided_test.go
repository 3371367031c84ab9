// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// Decided is called with the plan before it is carried out: what comes of a
// decision cannot be seen earlier than the decision.
func TestDecidedComesFirst(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	s.pod("huge", "1000", nil)
	var heard []string
	s.Decided = func(snapshot *model.Snapshot, plan *model.Plan) {
		heard = append(heard, fmt.Sprintf("%d pending, %d launched, %d without a place, %d claims",
			len(snapshot.Pending), len(plan.Launches), len(plan.Verdicts), len(s.claims())))
	}
	s.mustPass()
	s.wantClaims(1)
	if want := "2 pending, 1 launched, 1 without a place, 0 claims"; len(heard) != 1 || heard[0] != want {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

// spec 25/64: a pod that a pass finds no place for is planned on nothing, though
// an earlier one had put it on a node.
func TestLaunchRejectedByLimitIsNotPlanned(t *testing.T) {
	s := newStage(t)
	s.node("n", "default", nil)
	s.pod("a", "1", nil)
	s.mustPass()
	target := func() string {
		for _, p := range s.world.Snapshot(s.clock.Now()).Pending {
			return p.Pods[0].Planned
		}
		return "not pending"
	}
	if got := target(); got != "n" {
		t.Fatalf("planned on %q, want n", got)
	}
	s.node("n", "default", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/closed", Effect: corev1.TaintEffectNoSchedule}}
	})
	s.mustPass()
	if got := target(); got != "" {
		t.Errorf("planned on %q after it had no place, want none", got)
	}
	s.node("n", "default", nil)
	s.mustPass()
	if got := target(); got != "n" {
		t.Errorf("planned on %q after it had a place again, want n", got)
	}
}

// What is being decided about shows only while it is (spec 50 §5).
func TestDecisionInTheMaking(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	s.pod("b", "1", nil)
	shown := func() map[string]float64 {
		families, err := s.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			switch f.GetName() {
			case "karpenter_scheduler_queue_depth", "karpenter_scheduler_unfinished_work_seconds":
				out[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return out
	}
	decide, during := s.Decide, map[string]float64{}
	s.Decide = func(snapshot *model.Snapshot) *model.Plan {
		s.clock.SetTime(s.clock.Now().Add(3 * time.Second))
		during = shown()
		return decide(snapshot)
	}
	s.mustPass()
	if during["karpenter_scheduler_queue_depth"] != 2 || during["karpenter_scheduler_unfinished_work_seconds"] != 3 {
		t.Errorf("%v while 2 pods are being decided about for 3 seconds", during)
	}
	if after := shown(); len(after) != 0 {
		t.Errorf("%v when nothing is being decided", after)
	}
}
