// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	autoscalingv1beta1 "karpenter/api/autoscaling/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
)

const (
	launchWindow = 5 * time.Minute
	launchesEach = 3 // nodes for one pod in the window
)

// launches follows the instances launched for pods that wait, and how many pods
// there have been.
type launches struct {
	known int         // instances
	at    []time.Time // of launches in the window
	pods  []podCount  // in the window, falling
}

type podCount struct {
	at time.Time
	n  int
}

func newLaunches(t terms) *Law {
	// A new process starts counting again.
	restarts := slices.ContainsFunc(t.script.Faults, func(f script.Fault) bool {
		return f.Kind == script.Crash || f.Kind == script.CrashAfter || f.Kind == script.Leader || f.Kind == script.Freeze
	})
	l := &launches{}
	return &Law{
		name:  "launches",
		means: "In any 5 minutes, the process launches at most three instances for each pod of a workload or CapacityBuffer. Replacements and nodes of static NodePools do not count.",
		check: func(s *sim.Seen) error {
			if restarts {
				return nil
			}
			return l.check(s)
		},
	}
}

func (l *launches) check(s *sim.Seen) error {
	if changed[*corev1.Pod](s) || len(l.pods) == 0 {
		l.count(s)
	}
	all := s.Cloud.Machines()
	if len(all) == l.known {
		return nil
	}
	for _, m := range all[l.known:] {
		for c := range store.All[*v1.NodeClaim](s.API) {
			if c.UID == m.ClaimUID && c.Annotations[v1.ReplacesAnnotationKey] == "" && !static(s, c.Labels[v1.NodePoolLabelKey]) {
				l.at = append(l.at, s.Now)
			}
		}
	}
	l.known = len(all)
	l.at = slices.DeleteFunc(l.at, func(at time.Time) bool { return s.Now.Sub(at) >= launchWindow })
	for len(l.pods) > 1 && s.Now.Sub(l.pods[1].at) >= launchWindow {
		l.pods = l.pods[1:]
	}
	if most := max(l.pods[0].n, 1) * launchesEach; len(l.at) > most {
		return fmt.Errorf("%d instances were launched in 5 minutes, when there were %d pods at most", len(l.at), l.pods[0].n)
	}
	return nil
}

// count notes how many pods there are. Counts that later ones exceed do not
// matter any more.
func (l *launches) count(s *sim.Seen) {
	n := 0
	for p := range store.All[*corev1.Pod](s.API) {
		if !ownedByDaemonSet(p) {
			n++
		}
	}
	n += buffered(s)
	for len(l.pods) > 0 && l.pods[len(l.pods)-1].n <= n {
		l.pods = l.pods[:len(l.pods)-1]
	}
	l.pods = append(l.pods, podCount{s.Now, n})
}

// buffered is for how many pods CapacityBuffers keep room.
func buffered(s *sim.Seen) int {
	n := 0
	for b := range store.All[*autoscalingv1beta1.CapacityBuffer](s.API) {
		n += int(*b.Spec.Replicas)
	}
	return n
}

func static(s *sim.Seen, pool string) bool {
	p := store.Find[*v1.NodePool](s.API, "", pool)
	return p != nil && p.IsStatic()
}
