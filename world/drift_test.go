package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// A pool whose roll-out is halted replaces no drifted node, one that is probing
// at most one, whatever its budgets allow. Other reasons are not concerned.
func TestHaltedRollout(t *testing.T) {
	for _, tt := range []struct {
		drift           world.Drift
		budget, drifted int
	}{
		{world.Free, 5, 5}, {world.Probing, 5, 1}, {world.Halted, 5, 0}, {world.Probing, 0, 0},
	} {
		w := world.New(model.NewAxis(), nil)
		w.SetPool(world.Pool{Name: "p", Drift: tt.drift, Allowed: func(time.Time, int, model.Reason) int { return tt.budget }})
		allowed := w.Snapshot(time.Unix(0, 0)).Pools[0].Disruption.Allowed
		if allowed[model.Drifted] != tt.drifted || allowed[model.Empty] != tt.budget || allowed[model.Underutilized] != tt.budget {
			t.Errorf("budget %d, %v: allowed %v, want %d drifted", tt.budget, tt.drift, allowed, tt.drifted)
		}
	}
}
