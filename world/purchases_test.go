// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// TestPausesSurviveARestart restores the pause of a PodGroup of which not all nodes could
// be had, in a world that knows nothing of it: no node is launched before, and the next pause is
// twice as long. A group of the same name, or one that runs, does not pause.
func TestPausesSurviveARestart(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	start := func(uid, node string) *world.World {
		w := world.New(model.NewAxis(), nil)
		w.SetPodGroup(world.PodGroup{Name: "default/g", UID: uid, MinCount: 2})
		for _, name := range []string{"a", "b"} {
			w.SetPod(world.Pod{Namespace: "default", Name: name, UID: name, Group: "default/g", Pending: node == "", Node: node, Shape: &model.Shape{Key: "s"}})
		}
		w.SetClaim(world.Claim{Name: "c", Groups: []string{"default/g"}, Created: now})
		return w
	}
	fail := func(w *world.World, now time.Time) time.Duration {
		failures, _ := w.Refused(now, []string{"default/g"}, nil)
		if len(failures) != 1 {
			t.Fatalf("%d failures at %s", len(failures), now)
		}
		return failures[0].Until.Sub(now)
	}
	waits := func(w *world.World, now time.Time) bool {
		groups := w.Snapshot(now).Groups
		return len(groups) == 1 && groups[0].Waits != ""
	}
	first := start("g1", "")
	if got := fail(first, now); got != time.Minute {
		t.Fatalf("the first pause is %s", got)
	}
	pauses := first.Pauses()
	next := start("g1", "")
	next.RestorePauses(pauses)
	if now = now.Add(30 * time.Second); !waits(next, now) {
		t.Error("the group does not pause after the restart")
	}
	if now = now.Add(time.Minute); waits(next, now) {
		t.Error("the pause does not end")
	}
	if got := fail(next, now); got != 2*time.Minute {
		t.Errorf("the second pause is %s, want 2m", got)
	}
	for what, w := range map[string]*world.World{"another group": start("g2", ""), "a group that runs": start("g1", "n")} {
		w.RestorePauses(pauses)
		if waits(w, now) || len(w.Pauses()) > 0 {
			t.Errorf("%s pauses", what)
		}
	}
}
