// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

// team is a PodGroup on four nodes that is disrupted only as a whole. After ten minutes, its
// nodes have drifted.
const team = `
run 30m rest 40m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general after=Never budgets=%s
pods train count=4 cpu=1500m mem=1Gi group=4 whole=true
at 10m edit general label=v2
`

// moving watches where the pods of a PodGroup run.
type moving struct {
	alive, least int             // bound pods now, and fewest since all were bound
	old          map[string]bool // nodes that all pods ran on at first
	moved        bool            // a pod has left them
	apart        time.Duration   // how long some of the first pods were there and others were not
	last         time.Time
}

func (*moving) Name() string { return "moving" }

func (m *moving) Check(s *sim.Seen) error {
	there, claims := 0, map[string]bool{}
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.DeletionTimestamp == nil {
			claims[c.Status.NodeName] = true
		}
	}
	m.alive = 0
	nodes := map[string]bool{}
	for p := range store.All[*corev1.Pod](s.API) {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			m.alive++
			nodes[p.Spec.NodeName] = true
		}
	}
	if m.old == nil && m.alive == 4 {
		m.old = nodes
	}
	for name := range m.old {
		if claims[name] {
			there++
		}
	}
	if 0 < there && there < len(m.old) {
		m.moved = true
		m.apart += s.Now.Sub(m.last)
	}
	m.moved = m.moved || m.old != nil && there == 0
	m.last = s.Now
	return nil
}

// End wants all pods to run.
func (m *moving) End(*sim.Seen) error {
	if m.alive != 4 || len(m.old) != 4 {
		return fmt.Errorf("%d pods run in the end, and ran on %d nodes at first", m.alive, len(m.old))
	}
	return nil
}

// TestGroupsMoveWhole has the nodes of a PodGroup drift whose pods are disrupted together: all
// four are replaced in one step, also if the process dies while it deletes them (spec 46/116),
// and none is while a budget allows only three (spec 46/117).
func TestGroupsMoveWhole(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	from := rand.Uint64N(1 << 40)
	crashed := 0
	for i, of := range []struct {
		name, budgets, faults string
		moves                 bool
	}{
		{"all at once", "4", "", true},
		{"with crashes", "4", "fault crash call=delete object=NodeClaim at=2\n", true},
		{"with crashes afterwards", "4", "fault crash-after call=delete object=NodeClaim at=3\n", true},
		{"too small a budget", "3", "", false},
	} {
		t.Run(of.name, func(t *testing.T) {
			s, err := script.Parse(fmt.Sprintf("seed %d\n", from+uint64(i)) + fmt.Sprintf(team, of.budgets) + of.faults)
			if err != nil {
				t.Fatal(err)
			}
			m := &moving{}
			v := (trial.Trial{Server: server, Script: s, Witness: m}).Hold(t)
			if v.Err != nil || m.moved != of.moves || m.apart > restarts {
				t.Errorf("seed %d: moved %t, want %t; some nodes were there and others not for %s: %v", s.Seed, m.moved, of.moves, m.apart, v.Err)
			}
			crashed += v.Faults[script.Crash] + v.Faults[script.CrashAfter]
		})
	}
	if crashed != 2 {
		t.Errorf("the process crashed %d times, want 2", crashed)
	}
}

// restarts is how long a process may take to do what another has begun: it starts, and becomes the leader.
const restarts = 30 * time.Second

// vain is a PodGroup of which the third node cannot be had for 90 minutes.
const vain = `
run 90m rest 1m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b,c
pool general after=Never budgets=0
pods train count=3 cpu=1500m mem=1Gi apart=zone group=3
fault no-capacity zone=c
`

// attempts watches the launches for a PodGroup that cannot start.
type attempts struct {
	times []time.Duration // of the first launch of each attempt, since the start
	last  time.Time       // when an instance was there
	empty bool            // none is
}

func (*attempts) Name() string { return "attempts" }

// Check wants no instance to be there five minutes after the first of an attempt was: none
// of the attempt, since the next one has not begun, or a moment without any has come between.
func (a *attempts) Check(s *sim.Seen) error {
	there := instances(s) > 0
	switch since := s.Now.Sub(s.Started); {
	case there && (len(a.times) == 0 || a.empty):
		a.times = append(a.times, since)
	case there && since-a.times[len(a.times)-1] > survives:
		return fmt.Errorf("an instance is there %s after the first of the group was launched", since-a.times[len(a.times)-1])
	}
	a.empty = !there
	return nil
}

// End wants no instance, no NodeClaim and no pod that runs.
func (a *attempts) End(s *sim.Seen) error {
	if n := instances(s); n > 0 {
		return fmt.Errorf("%d instances are there in the end", n)
	}
	for p := range store.All[*corev1.Pod](s.API) {
		if p.Spec.NodeName != "" {
			return fmt.Errorf("pod %s runs without its group", p.Name)
		}
	}
	return nil
}

// instances returns how many there are.
func instances(s *sim.Seen) int {
	n := 0
	for _, m := range s.Cloud.Machines() {
		if m.Runs() {
			n++
		}
	}
	return n
}

// TestNoNodeIsLeft has one node of a PodGroup not be had, again and again: five minutes after
// the first of an attempt is launched, no instance is left (spec 46/103). Attempts are rarer
// and rarer, also if the process dies between them.
func TestNoNodeIsLeft(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	from := rand.Uint64N(1 << 40)
	for i, faults := range []string{"", "fault crash from=12m times=1\nfault crash from=21m times=1\nfault crash from=28m times=1\nfault crash from=40m times=1\nfault crash from=50m times=1\n"} {
		s, err := script.Parse(fmt.Sprintf("seed %d\n", from+uint64(i)) + vain + faults)
		if err != nil {
			t.Fatal(err)
		}
		a := &attempts{}
		v := (trial.Trial{Server: server, Script: s, Witness: a, PublishIn: "default"}).Hold(t)
		crashes := v.Faults[script.Crash]
		t.Logf("seed %d: attempts at %s, %d crashes", s.Seed, a.times, crashes)
		// Pauses of 1, 2, 4, 8, 16, 30 minutes leave time for eight attempts.
		if v.Err != nil || len(a.times) < 3 || len(a.times) > 8 || crashes != 5*i {
			t.Errorf("seed %d: %d attempts and %d crashes: %v", s.Seed, len(a.times), crashes, v.Err)
		}
	}
}
