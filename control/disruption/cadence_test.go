// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watched is a stage on which a command that takes long is under way and a plan
// has just been made.
func watched(t *testing.T) *stage {
	s := newStage(t)
	s.declare("pool general budget=3")
	for _, n := range []string{"a", "b", "c"} {
		s.declare("node n" + n)
		s.declare("pod " + n + " node=n" + n)
	}
	s.plan("Underutilized na launch=general")
	s.run(DefaultDelay + time.Second)
	s.underWay(1)
	s.loop.cadence.planned(s.clock.Now(), 0)
	return s
}

func (s *stage) underWay(want int) {
	s.t.Helper()
	if got := len(s.loop.executions); got != want {
		s.t.Fatalf("%d commands are under way, want %d:\n%s", got, want, s.show())
	}
}

// happening is what happens before the pass at some time or, if there is none,
// the next one.
type happening struct {
	at   time.Duration
	what func()
}

// run makes passes for so long, when the loop asks for them, and returns when it
// made plans, in seconds.
func (s *stage) run(length time.Duration, happens ...happening) string {
	s.t.Helper()
	s.end, s.decided = func() {}, nil
	start := s.clock.Now()
	for s.clock.Since(start) < length {
		for len(happens) > 0 && s.clock.Since(start) >= happens[0].at {
			happens[0].what()
			happens = happens[1:]
		}
		result, err := s.loop.Reconcile(s.t.Context(), reconcile.Request{})
		s.must(err)
		s.clock.Step(result.RequeueAfter)
	}
	var out []string
	for _, at := range s.decided {
		out = append(out, fmt.Sprint(at.Sub(start).Seconds()))
	}
	return strings.Join(out, " ")
}

// Looking after a command for a minute takes six plans, not sixty.
func TestCommandsUnderWayNeedNoPlans(t *testing.T) {
	s := watched(t)
	if diff := cmp.Diff("10 20 30 40 50 60", s.run(61*time.Second)); diff != "" {
		t.Error(diff)
	}
	s.underWay(1)
}

// Plans follow what happens while commands are under way, and not everything
// that happens.
func TestPlansWhileCommandsAreUnderWay(t *testing.T) {
	at := func(seconds int, what func()) happening { return happening{time.Duration(seconds) * time.Second, what} }
	for _, tt := range []struct {
		name    string
		happens func(*stage) []happening
		want    string
	}{
		{"an intent is found, and due", func(s *stage) []happening {
			return []happening{at(8, func() { s.plan("Underutilized nb launch=general") })}
		}, "10 20 25 35"},
		{"a command ends", func(s *stage) []happening {
			return []happening{at(13, func() { s.joins("r2", true) })}
		}, "10 13 23 33"},
		{"a replacement is lost", func(s *stage) []happening {
			return []happening{at(13, func() { s.lose("r2") })}
		}, "10 13 13.1 23.1 33.1"},
		{"a node that was going is gone", func(s *stage) []happening {
			return []happening{at(5, func() { s.lose("c-nb") }), at(13, func() { s.lose("c-nc") })}
		}, "5 13 23 33"},
		{"a pod comes", func(s *stage) []happening {
			return []happening{at(13, func() { s.declare("pod d node=nb") })}
		}, "10 20 30"},
		{"commands end, and planning takes half a second", func(s *stage) []happening {
			s.takes = time.Second / 2
			return []happening{at(12, func() { s.joins("r2", true) })}
		}, "10 15.5 26"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := watched(t)
			happens := tt.happens(s)
			if !strings.Contains(tt.name, "intent") {
				s.plan("Drifted nb launch=general\nDrifted nc")
				s.run(11 * time.Second)
				s.underWay(2)
				s.loop.cadence.planned(s.clock.Now(), s.takes)
			}
			if diff := cmp.Diff(tt.want, s.run(36*time.Second, happens...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// While nothing is under way, plans that take long are made less often, but intents are
// confirmed in time.
func TestPlansThatTakeLong(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration
		plan  string
		want  string
	}{
		{0, "", "0 10 20 30 40 50"},
		{2 * time.Second, "", "0 22 44"},
		{20 * time.Second, "", "0 50"},
		{2 * time.Second, "Underutilized na launch=general", "0 17 27 37 47"},
	} {
		t.Run(fmt.Sprint(tt.takes, " ", tt.plan), func(t *testing.T) {
			s := newStage(t)
			s.declare("pool general budget=3")
			s.declare("node na")
			s.plan(tt.plan)
			s.takes = tt.takes
			if diff := cmp.Diff(tt.want, s.run(55*time.Second)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
