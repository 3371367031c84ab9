// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"errors"
	"testing"
	"time"

	"karpenter/model"
)

func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		executions int
		want       time.Duration
	}{ // spec 40/94
		{100, 10 * time.Minute}, {4000, 10 * time.Minute}, {10_000, 13*time.Minute + 20*time.Second},
		{40_000, 53*time.Minute + 20*time.Second}, {45_000, time.Hour}, {100_000, time.Hour},
	} {
		if got := timeLimit(tt.executions); got != tt.want {
			t.Errorf("timeLimit(%d) = %s, want %s", tt.executions, got, tt.want)
		}
	}
}

func TestIntentOfAnotherReasonIsNew(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	nodes := []model.Target{{Node: "n", Claim: "c"}}
	empty, used := model.Command{Reason: model.Empty, Nodes: nodes}, model.Command{Reason: model.Underutilized, Nodes: nodes}
	first := intents(nil).confirm([]model.Command{empty}, start, time.Minute)
	if len(first.due) != 0 || len(first.found) != 1 {
		t.Errorf("got %+v, want one found and none due", first)
	}
	second := first.next.confirm([]model.Command{used}, start.Add(time.Minute), time.Minute)
	if len(second.due) != 0 || len(second.found) != 1 || len(second.dropped) != 1 || second.next.wait(start.Add(time.Minute), time.Hour) != time.Minute {
		t.Errorf("got %+v, want the wait to begin again", second)
	}
}

// spec 40/93: many removals at once, some of which fail, do not disturb each
// other.
func TestRemovalsInParallel(t *testing.T) {
	s := newStage(t)
	s.declare("pool general budget=100%")
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.declare("node n" + n)
	}
	s.pass()
	s.clock.Step(DefaultDelay)
	s.stale.Store(true) // the first write only
	s.pass()
	deleting := func() (n int) {
		for _, c := range s.claims() {
			if c.DeletionTimestamp != nil {
				n++
			}
		}
		return n
	}
	if got := deleting(); got != 7 {
		t.Errorf("%d claims are being deleted, want 7 of 8", got)
	}
	s.pass()
	if got := deleting(); got != 8 {
		t.Errorf("%d claims are being deleted, want all 8", got)
	}
}

func TestConflictIsNoError(t *testing.T) {
	if _, err := again(errors.New("down")); err == nil {
		t.Error("an error was swallowed")
	}
}
