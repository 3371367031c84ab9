// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"karpenter/sim"
)

// nth has a fault hit the n-th call of a verb.
type nth struct {
	verb  string
	n     int
	fault sim.Fault
	hit   sim.Call
}

func (f *nth) API(c sim.Call) sim.Fault {
	if c.Verb != f.verb {
		return sim.Fault{}
	}
	if f.n--; f.n != 0 {
		return sim.Fault{}
	}
	f.hit = c
	return f.fault
}

func (f *nth) Cloud(c sim.Call) sim.Fault { return f.API(c) }

// witness is a law that keeps what was seen of one object's writes.
type witness struct {
	sim.Law
	kind    string
	changes []string
	calls   []sim.Made
	steps   strings.Builder // the transcript
}

func (w *witness) Name() string { return "witness" }

func (w *witness) Check(s *sim.Seen) error {
	for _, c := range s.Changes {
		if c.By == "karpenter" && c.Kind == w.kind {
			w.changes = append(w.changes, c.Verb)
		}
	}
	w.calls = append(w.calls, s.Calls...)
	return nil
}

func (w *witness) End(*sim.Seen) error { return nil }

func (w *witness) saw(what string) bool {
	return strings.Contains(w.steps.String(), what)
}

func play(t *testing.T, seed uint64, f *nth) (sim.Result, *witness) {
	t.Helper()
	w := &witness{kind: "NodePool"}
	s := setup(t, seed)
	s.Transcript = &w.steps
	s.Laws = func(*sim.Run) []sim.Law { return []sim.Law{w, quiet{}} }
	s.Faults = func(*sim.Run) sim.Faults { return f }
	r := sim.Play(t, s)
	if r.Err != nil {
		t.Errorf("seed %d: %v", seed, r.Err)
	}
	if f.n > 0 || f.hit.By == "" || f.hit.Kind != "NodePool" {
		t.Errorf("seed %d: the fault hit %+v", seed, f.hit)
	}
	return r, w
}

func TestFaultsOfCalls(t *testing.T) {
	refused, lost := errors.New("refused"), errors.New("lost")
	for _, tc := range []struct {
		name     string
		fault    sim.Fault
		restarts int
		effect   bool
		err      error
	}{
		{"refused", sim.Fault{Refuse: refused}, 0, false, refused},
		{"lost", sim.Fault{Lose: lost}, 0, true, lost},
		{"slow", sim.Fault{Delay: 3 * time.Second}, 0, true, nil},
		{"crash after", sim.Fault{Crash: true, After: true}, 1, true, nil},
	} {
		r, w := play(t, 3, &nth{verb: "patch", n: 1, fault: tc.fault})
		var first sim.Made
		for _, c := range w.calls {
			if c.Verb == "patch" {
				first = c
				break
			}
		}
		if r.Restarts != tc.restarts || first.Effect != tc.effect || tc.err != nil && first.Err != tc.err {
			t.Errorf("%s: %d restarts, call %+v", tc.name, r.Restarts, first)
		}
		if slow := w.saw("is slow"); slow != (tc.fault.Delay > 0) {
			t.Errorf("%s: slow is %t", tc.name, slow)
		}
	}
}

func TestCrashBeforeACall(t *testing.T) {
	r, w := play(t, 3, &nth{verb: "patch", n: 1, fault: sim.Fault{Crash: true}})
	if r.Restarts != 1 || !w.saw("the process crashes before it") {
		t.Errorf("%d restarts", r.Restarts)
	}
	patches := 0
	for _, verb := range w.changes {
		if verb == "patch" {
			patches++
		}
	}
	if patches != 1 {
		t.Errorf("the hash was written %d times, want once, by the second life", patches)
	}
}

// meddler is an actor that disturbs the process at some moments.
type meddler struct {
	at []time.Duration
	do func()

	started time.Time
}

func (m *meddler) Name() string { return "meddler" }

func (m *meddler) Wake() time.Time {
	if len(m.at) == 0 {
		return time.Time{}
	}
	return m.started.Add(m.at[0])
}

func TestOrdersToTheProcess(t *testing.T) {
	strays, gaps := 0, 0
	for seed := range uint64(20) {
		w := &witness{kind: "NodePool"}
		s := setup(t, seed)
		s.Transcript = &w.steps
		var run *sim.Run
		s.Actors = func(r *sim.Run) ([]sim.Actor, error) {
			run = r
			m := &meddler{at: []time.Duration{0, 100 * time.Millisecond, 101 * time.Millisecond}, started: r.Started}
			m.do = func() { run.ChangeLeader(); run.Gap("NodePool"); run.Freeze("NodePool", time.Now().Add(time.Second)) }
			return []sim.Actor{m}, nil
		}
		s.Laws = func(*sim.Run) []sim.Law { return []sim.Law{w, quiet{}} }
		r := sim.Play(t, s)
		if r.Err != nil || r.Restarts != 3 {
			t.Errorf("seed %d: %+v", seed, r)
		}
		if w.saw("a call of an earlier process arrives") {
			strays++
		}
		if w.saw("watch of NodePool lists again") {
			gaps++
		}
	}
	if strays == 0 || gaps == 0 {
		t.Errorf("of 20 runs %d had strays and %d a gap", strays, gaps)
	}
}

func (m *meddler) Step(context.Context) (bool, error) {
	if len(m.at) == 0 || time.Now().Before(m.started.Add(m.at[0])) {
		return false, nil
	}
	m.at = m.at[1:]
	m.do()
	return true, nil
}
