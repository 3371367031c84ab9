// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

var rollPods = flag.Int("roll-pods", 60, "pods of TestRolloutMovesPodsOnce; there are a fifth as many nodes")

// drifting is a cluster whose nodes drift, all at once. It is full, or half of its pods have gone
// before and nothing consolidates it.
const drifting = `
run 50m rest 1m
type c4 cpu=4 mem=8Gi price=0.17 zones=a,b,c
type c8 cpu=8 mem=16Gi price=0.34 zones=a,b,c
type m4 cpu=4 mem=16Gi price=0.192 zones=a,b,c
type r4 cpu=4 mem=32Gi price=0.252 zones=a,b,c
pool general budgets=10%% %s
pods small count=%d cpu=900m mem=1500Mi
pods large count=%d cpu=1700m mem=5Gi
%s
at 20m edit general label=v2
seed %d
`

// rolling counts what a rollout takes.
type rolling struct {
	*trial.Ledger
	taken int
	last  time.Duration // since the start: the last drifted node deleted
}

func (r *rolling) Check(s *sim.Seen) error {
	err := r.Ledger.Check(s)
	if n := r.Taken[model.Drifted]; n != r.taken {
		r.taken, r.last = n, s.Now.Sub(s.Started)
	}
	return err
}

// TestRolloutMovesPodsOnce replaces all nodes within a budget of 10%. In a full cluster, a pod that has to leave its
// node hardly ever goes to a node that is about to be replaced as well. In a half-empty cluster, the
// scheduler sends some pods to such nodes.
func TestRolloutMovesPodsOnce(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	n := *rollPods
	for name, of := range map[string]struct {
		pool, before string
		pods         int
		most         float64 // evictions per pod
	}{
		"full":  {"after=30s policy=WhenEmptyOrUnderutilized", "", n/5*4 + n/5, 1.1},
		"loose": {"after=Never policy=WhenEmpty", fmt.Sprintf("at 10m scale small %d", n/5*2), n/5*2 + n/5, 1.75},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := script.Parse(fmt.Sprintf(drifting, of.pool, n/5*4, n/5, of.before, time.Now().UnixNano()%1000))
			if err != nil {
				t.Fatal(err)
			}
			r := &rolling{Ledger: trial.NewLedger(20 * time.Minute)}
			v := (trial.Trial{Server: server, Script: s, Calm: true, Steps: 20_000_000, Witness: r}).Hold(t)
			took, moves := r.last-20*time.Minute, float64(r.Evictions)/float64(of.pods)
			t.Logf("seed %d: %d nodes in %s, %.3f evictions for each of %d pods\n%s", s.Seed, r.taken, took.Round(time.Second), moves, of.pods, r)
			if v.Err != nil || r.taken < r.Nodes.Least || took > 25*time.Minute || moves > of.most {
				t.Errorf("seed %d: %d nodes are replaced in %s with %.3f evictions per pod: %v", s.Seed, r.taken, took, moves, v.Err)
			}
		})
	}
}
