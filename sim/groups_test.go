// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"maps"
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

// short is a PodGroup with a node in each of three zones, one of which has no capacity
// for 40 minutes. A Deployment shares the NodePool.
const short = `
run 45m rest 45m
type m2 cpu=2 mem=8Gi price=0.10 zones=a,b,c
pool general %s
pods train count=3 cpu=1500m mem=1Gi apart=zone group=3
pods web count=3 cpu=1700m mem=1Gi zone=a
fault no-capacity zone=c for=40m
`

// survives is how long an instance without pods may be there, of a group that cannot start.
const survives = 5 * time.Minute

// returning is the law that no instance of a group that cannot start is there for long,
// and that none of its pods runs until all can.
type returning struct {
	until time.Duration        // since the start, there is no capacity
	empty map[string]time.Time // since when instances have had no pod, by NodeClaim
	vain  map[string]bool      // those that had none
}

func (*returning) Name() string { return "returning" }

func (r *returning) Check(s *sim.Seen) error {
	if s.Now.Sub(s.Started) >= r.until {
		return nil
	}
	busy := map[string]bool{}
	for p := range store.All[*corev1.Pod](s.API) {
		busy[p.Spec.NodeName] = true
		if p.Spec.SchedulingGroup != nil && p.Spec.NodeName != "" {
			return fmt.Errorf("pod %s runs without its group", p.Name)
		}
	}
	there := map[string]bool{}
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.Status.ProviderID == "" || c.Status.NodeName != "" && busy[c.Status.NodeName] {
			continue
		}
		there[c.Name] = true
		if r.empty[c.Name].IsZero() {
			r.empty[c.Name] = s.Now
		}
		if age := s.Now.Sub(r.empty[c.Name]); age > survives {
			return fmt.Errorf("the instance of NodeClaim %s has been without pods for %s", c.Name, age)
		}
		r.vain[c.Name] = true
	}
	maps.DeleteFunc(r.empty, func(name string, _ time.Time) bool { return !there[name] })
	return nil
}

// End wants the whole group to run once there is capacity, and instances to have been
// returned before.
func (r *returning) End(s *sim.Seen) error {
	running := 0
	for p := range store.All[*corev1.Pod](s.API) {
		if p.Spec.SchedulingGroup != nil && p.Spec.NodeName != "" {
			running++
		}
	}
	if running != 3 || len(r.vain) < 2 {
		return fmt.Errorf("%d pods of the group run in the end, after %d instances in vain", running, len(r.vain))
	}
	return nil
}

var groups = flag.Int("groups", 6, "how many seeds to draw scripts with PodGroups from")

// TestGroupSeeds holds trials of scripts with PodGroups, drawn from fresh seeds: no
// instance of a group that cannot start survives, and we end no pod of a group that must
// run (laws returned and together), and limits hold at every moment (spec 46/110, law
// limits).
func TestGroupSeeds(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	from := *firstSeed
	if from == 0 {
		from = rand.Uint64N(1 << 40)
	}
	t.Logf("seeds from %d", from)
	for seed := from; seed < from+uint64(*groups); seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			s := script.DrawGroups(seed)
			if v := judge(t, server, s); v.Err != nil {
				fail(t, server, s, v.Err)
			}
		})
	}
}

// groupSeeds is how many runs TestGroupsThatFail makes.
const groupSeeds = 8

// TestGroupsThatFail has one launch of a PodGroup fail again and again, in any order of
// events, with crashes around launches in half of the runs (spec 46/104): each time,
// the instances of the others are gone within five minutes, no pod of the group
// starts, and the group starts as a whole when there is capacity.
func TestGroupsThatFail(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	const crashes = "fault crash-after call=Create every=2 times=3 for=20m\nfault crash call=Create every=2 times=3 for=20m\n"
	crashed, from := 0, rand.Uint64N(1<<40)
	for seed := from; seed < from+groupSeeds; seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			text := fmt.Sprintf(short, "budgets=0 after=Never") // which say nothing of groups that cannot start
			if seed%2 == 0 {                                    // after a crash, pods can go to other nodes than those that were launched for them
				text = fmt.Sprintf(short, "budgets=100%") + crashes
			}
			s, err := script.Parse(fmt.Sprintf("seed %d\n%s", seed, text))
			if err != nil {
				t.Fatal(err)
			}
			law := &returning{until: 40 * time.Minute, empty: map[string]time.Time{}, vain: map[string]bool{}}
			v := (trial.Trial{Server: server, Script: s, Witness: law}).Hold(t)
			if v.Err != nil {
				t.Error(v.Err)
			}
			crashed += v.Faults[script.Crash] + v.Faults[script.CrashAfter]
		})
	}
	if crashed == 0 {
		t.Error("nothing crashed")
	}
}
