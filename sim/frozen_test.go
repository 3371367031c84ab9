// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"

	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

// freezing has the leader stand still in the middle of a scale-up, past its lease.
const freezing = `
run 12m rest 32m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general after=30s
pods web count=12 cpu=900m mem=1Gi
at 3m scale web 30
at 7m scale web 8
fault freeze at=%d lag=%ds
fault freeze from=3m every=60 times=2 lag=%ds
`

// late counts the writes that replicas try which no longer lead.
type late struct{ tried, made int }

func (l *late) Name() string        { return "late" }
func (l *late) End(*sim.Seen) error { return nil }

func (l *late) Check(s *sim.Seen) error {
	for _, c := range s.Calls {
		if c.Late && c.Writes {
			l.tried++
			if c.Effect {
				l.made++
			}
		}
	}
	return nil
}

// TestFrozenLeader: a leader that stands still past its lease makes none of the
// calls that it was about to make, whoever leads then; one that stands still for
// less goes on.
func TestFrozenLeader(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for lag, takesOver := range map[int]bool{12: false, 40: true} {
		l := &late{}
		restarts := 0
		for seed := range uint64(6) {
			s, err := script.Parse(fmt.Sprintf("seed %d\n"+freezing, seed, 20+15*seed, lag, lag))
			if err != nil {
				t.Fatal(err)
			}
			v := trial.Trial{Server: server, Script: s, Witness: l}.Hold(t)
			if v.Err != nil {
				t.Errorf("lag %ds, seed %d: %v", lag, seed, v.Err)
			}
			if v.Faults[script.Freeze] == 0 {
				t.Errorf("lag %ds, seed %d: the leader was not frozen", lag, seed)
			}
			restarts += v.Restarts
		}
		if (restarts > 0) != takesOver || (l.tried > 0) != takesOver || l.made > 0 {
			t.Errorf("lag %ds: %d times another replica took over; %d of %d late writes were made", lag, restarts, l.made, l.tried)
		}
	}
}
