// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// While one is being replaced for a probe, none is for another.
func TestProbingIsOneAtATime(t *testing.T) {
	w := world.New(model.NewAxis(), nil)
	w.SetPool(world.Pool{Name: "p", Drift: world.Probing, Allowed: func(time.Time, int, model.Reason) int { return 5 }})
	for _, name := range []string{"a", "b", "c"} {
		c := claimOf("p", name)
		c.ProviderID = name
		w.SetClaim(c)
		w.SetNode(world.Node{Name: name, ProviderID: name, Ready: true, Labels: map[string]string{model.LabelNodePool: "p", model.LabelInitialized: "true"}})
	}
	for _, step := range []struct {
		do   func(...string)
		want int
	}{{func(...string) {}, 1}, {w.MarkForDeletion, 0}, {w.Unmark, 1}} {
		step.do("a")
		if got := w.Snapshot(time.Unix(0, 0)).Pools[0].Disruption.Allowed[model.Drifted]; got != step.want {
			t.Errorf("%d may be replaced, want %d", got, step.want)
		}
	}
}

// A pool whose roll-out is halted replaces no drifted node, one that is probing
// at most one, whatever its budgets allow. Other reasons have their budgets.
func TestHaltedRollout(t *testing.T) {
	const halted = "instances of NodePool p do not become nodes, as its condition RolloutHalted says"
	const tried = halted + "; one at a time is tried"
	for _, tt := range []struct {
		drift           world.Drift
		budget, drifted int
		halted          string
	}{
		{world.Free, 5, 5, ""},
		{world.Probing, 5, 1, tried},
		{world.Probing, 1, 1, tried},
		{world.Halted, 5, 0, halted},
		{world.Halted, 0, 0, halted},
		{world.Probing, 0, 0, tried},
	} {
		w := world.New(model.NewAxis(), nil)
		w.SetPool(world.Pool{Name: "p", Drift: tt.drift, Allowed: func(time.Time, int, model.Reason) int { return tt.budget }})
		d := w.Snapshot(time.Unix(0, 0)).Pools[0].Disruption
		allowed := d.Allowed
		if allowed[model.Drifted] != tt.drifted || allowed[model.Empty] != tt.budget || allowed[model.Underutilized] != tt.budget {
			t.Errorf("budget %d, %v: allowed %v, want %d drifted", tt.budget, tt.drift, allowed, tt.drifted)
		}
		if d.Halted != tt.halted || d.Probing != (tt.drift == world.Probing) {
			t.Errorf("budget %d, %v: halted as %q, want %q", tt.budget, tt.drift, d.Halted, tt.halted)
		}
	}
}
