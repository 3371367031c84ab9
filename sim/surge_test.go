// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/kube/pods"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

// downtime is a law that nothing breaks: it adds up for how long no pod is ready after
// the first one was.
type downtime struct {
	since, last time.Time // since when none is; when the last step was
	began       bool
	sum         time.Duration
	pods        map[string]bool // that were ready
}

func (d *downtime) Name() string { return "downtime" }

func (d *downtime) Check(s *sim.Seen) error {
	ready := false
	for p := range store.All[*corev1.Pod](s.API) {
		if pods.Ready(p) && p.DeletionTimestamp == nil {
			ready, d.pods[p.Name] = true, true
		}
	}
	if d.began && !d.since.IsZero() {
		d.sum += s.Now.Sub(d.last)
	}
	d.last, d.began, d.since = s.Now, d.began || ready, time.Time{}
	if !ready {
		d.since = s.Now
	}
	return nil
}

func (d *downtime) End(*sim.Seen) error { return nil }

// TestSurgeFirst drifts the node of a Deployment with one replica. If it asks for its
// replacement first, a pod of it is ready all the time, also if the process dies on the
// way; otherwise it is down for a while.
func TestSurgeFirst(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, pods, fault string
		down              bool
	}{
		{"evicted", "", "", true},
		{"surge first", " surge=true", "", false},
		{"surge first, with crashes", " surge=true", "fault crash every=40 times=12\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seed := rand.Uint64N(1 << 40)
			text := fmt.Sprintf(`seed %d
run 40m rest 20m
type c4 cpu=4 mem=8Gi price=0.17 zones=a,b
pool general after=1m budgets=100%%
pods web count=1 cpu=1 mem=1Gi grace=10s%s
%sat 10m edit general label=two
`, seed, tc.pods, tc.fault)
			s, err := script.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			d := &downtime{pods: map[string]bool{}}
			v := trial.Trial{Server: server, Script: s, Witness: d}.Hold(t)
			if v.Err != nil {
				t.Fatalf("after %s: %v\n%s", v.Lasted, v.Err, text)
			}
			if len(d.pods) < 2 {
				t.Errorf("the pod was not moved\n%s", text)
			}
			if down := d.sum > 0; down != tc.down {
				t.Errorf("no pod was ready for %s\n%s", d.sum, text)
			}
		})
	}
}
