// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/trial"
)

// poisoned is a cluster in which a third party taints every node of a pool NoExecute
// for 40 minutes. Pods other than the one that needs the pool are not affected.
const poisoned = `
run 50m rest 40m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general after=30s
pool extra after=30s
pods web count=4 cpu=500m mem=1Gi pool=extra
pods db count=1 cpu=500m mem=1Gi pool=general
at 0s poison general 40m
at 10m scale web 10
`

// unready is a cluster whose nodes join and never become ready for 40 minutes.
const unready = `
run 50m rest 40m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general after=30s
pods db count=1 cpu=500m mem=1Gi pool=general
at 0s unready general 40m
`

// unbound is a cluster in which a pod cannot be bound for 40 minutes, since its
// volume cannot be provisioned.
const unbound = `
run 50m rest 40m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general after=30s
pods db count=1 cpu=500m mem=1Gi pool=general
at 0s unbound db 40m
`

// unstarted is a cluster in which a pod is bound and does not start for 40
// minutes, since its image cannot be pulled. Its controller makes it again every
// two minutes or so.
const unstarted = `
run 50m rest 40m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b
pool general after=30s
pods db count=1 cpu=500m mem=1Gi life=2m pool=general
at 0s unstarted db 40m
`

// launchTimes is when claims of pool general were created.
type launchTimes struct{ at []time.Duration }

func (*launchTimes) Name() string { return "launch-times" }

func (l *launchTimes) Check(s *sim.Seen) error {
	for _, c := range s.Changes {
		if claim, ok := c.New.(*v1.NodeClaim); ok && c.Old == nil && claim.Labels[v1.NodePoolLabelKey] == "general" {
			l.at = append(l.at, s.Now.Sub(s.Started))
		}
	}
	return nil
}

func (l *launchTimes) End(*sim.Seen) error { return nil }

// TestLaunchBackoff holds the number of nodes launched for one pod that none of
// them runs against 3 in 5 minutes: the nodes are tainted, never become ready, or
// what else the pod needs is not there. In the end the pod runs.
func TestLaunchBackoff(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tainted": poisoned, "unready": unready, "unready, repaired": "\ngates NodeRepair" + unready,
		"volumes": unbound, "images": unstarted,
	} {
		for seed := range uint64(5) {
			s, err := script.Parse(fmt.Sprintf("seed %d", seed+1) + text)
			if err != nil {
				t.Fatal(err)
			}
			w := &launchTimes{}
			if v := (trial.Trial{Server: server, Script: s, Witness: w}).Hold(t); v.Err != nil {
				t.Errorf("%s, seed %d: %v", name, seed+1, v.Err)
			}
			if len(w.at) == 0 {
				t.Errorf("%s, seed %d: no node was launched", name, seed+1)
			}
			for i := 3; i < len(w.at); i++ {
				if w.at[i]-w.at[i-3] < 5*time.Minute {
					t.Errorf("%s, seed %d: four nodes within 5 minutes: %v", name, seed+1, w.at)
					break
				}
			}
			t.Logf("%s, seed %d: %d nodes: %v", name, seed+1, len(w.at), w.at)
		}
	}
}
