package provisioning

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// Who asks what was decided is told before it is carried out: what comes of a
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
func TestRefusedIsNotPlanned(t *testing.T) {
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
