// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"testing"
	"time"

	"karpenter/model"
)

func TestBatch(t *testing.T) {
	type trigger struct {
		uid string
		at  time.Duration
	}
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	// every adds a new UID each interval, from 0 until before the end.
	every := func(interval, end time.Duration) []trigger {
		var out []trigger
		for at := time.Duration(0); at < end; at += interval {
			out = append(out, trigger{at.String(), at})
		}
		return out
	}
	for _, tc := range []struct {
		name     string
		triggers []trigger
		window   Window
		end      time.Duration
	}{
		{"spec 20/1 one pod", []trigger{{"a", 0}}, Window{time.Second, 10 * time.Second}, time.Second},
		{"spec 20/2 the same pod does not extend", []trigger{{"a", 0}, {"a", 900 * time.Millisecond}}, Window{time.Second, 10 * time.Second}, time.Second},
		{"spec 20/2 nor does the first again", []trigger{{"a", 0}, {"b", 500 * time.Millisecond}, {"a", time.Second}}, Window{time.Second, 10 * time.Second}, 1500 * time.Millisecond},
		{"spec 20/3 a new pod extends", []trigger{{"a", 0}, {"b", 900 * time.Millisecond}}, Window{time.Second, 10 * time.Second}, 1900 * time.Millisecond},
		{"spec 20/3 up to the most", every(500*time.Millisecond, 20*time.Second), Window{time.Second, 10 * time.Second}, 10 * time.Second},
		{"what comes after the end changes nothing", []trigger{{"a", 0}, {"b", time.Second}}, Window{time.Second, 10 * time.Second}, time.Second},
		{"durations are those of the window", []trigger{{"a", 0}, {"b", 2 * time.Second}}, Window{3 * time.Second, 4 * time.Second}, 4 * time.Second},
		{"an idle time longer than the most", []trigger{{"a", 0}}, Window{time.Minute, time.Second}, time.Second},
		{"no waiting", []trigger{{"a", 0}, {"b", 0}}, Window{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &batch{window: tc.window}
			for i, x := range tc.triggers {
				if first := b.add(x.uid, start.Add(x.at)); first != (i == 0) {
					t.Errorf("trigger %d is the first: %t", i, first)
				}
			}
			end, ok := b.end()
			if got := end.Sub(start); !ok || got != tc.end {
				t.Errorf("ends after %v, %t, want %v", got, ok, tc.end)
			}
		})
	}
}

// spec 20/2: the UIDs are forgotten at the end of the window.
func TestBatchForgets(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &batch{window: Window{time.Second, 10 * time.Second}}
	b.add("a", start)
	b.clear()
	if _, ok := b.end(); ok {
		t.Error("a window without triggers")
	}
	if !b.add("a", start.Add(time.Minute)) {
		t.Error("the same UID does not open the next window")
	}
	if end, _ := b.end(); !end.Equal(start.Add(time.Minute + time.Second)) {
		t.Errorf("the next window ends at %v", end)
	}
}

// spec 46/139: for 2,000 pods that come within a second to a cluster without nodes, one
// pass launches all nodes, as soon as the batch is complete.
func TestBurst(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	began := s.clock.Now()
	for i := range 2000 {
		s.pod(fmt.Sprint("p", i), "0.5", nil)
		if i%20 == 0 {
			s.clock.SetTime(s.clock.Now().Add(10 * time.Millisecond))
		}
	}
	var passes []int
	s.Done = func(_ *model.Snapshot, plan *model.Plan) { passes = append(passes, len(plan.Launches)) }
	for range 3 {
		if after := s.reconcile(); len(passes) == 0 {
			s.clock.SetTime(s.clock.Now().Add(after))
		}
	}
	if took := s.clock.Now().Sub(began); len(passes) != 1 || passes[0] == 0 || len(s.claims()) != passes[0] || took > 2*time.Second {
		t.Errorf("after %v, passes have launched %v, and there are %d claims", took, passes, len(s.claims()))
	}
}
