// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/session"
)

// Sizes of the demo, and how long each part may take. Simulated instances boot in seconds. An empty one is
// removed only after the autoscaler has waited, confirmed its decision and drained it.
const (
	inflated = 50
	websites = 60 // more than the limits of the general pool allow
	builds   = 16 // more than the limits of the runners' pool allow at once

	upWithin   = 2 * time.Minute
	jobWithin  = 5 * time.Minute
	downWithin = 4 * time.Minute
)

// Run plays the script on the examples: grow, run into limits, shrink to nothing.
func Run(ctx context.Context, options Options) error {
	options.Examples = cmp.Or(options.Examples, filepath.Join("examples", cmp.Or(options.Session.Provider, session.AWS)))
	options.Session.Manifests = append(options.Session.Manifests, filepath.Join(options.Examples, "default"))
	return perform(ctx, options, script{steps: examplesScript(options.Session.Provider), settle: 500 * time.Millisecond})
}

func examplesScript(provider string) []step {
	out := []step{
		{"the default pool", nil, []want{{"all pools are ready", time.Minute, poolsReady}}},
		{
			fmt.Sprintf("scale inflate to %d pods", inflated),
			all(apply("../inflate.yaml"), scale("inflate", inflated)),
			[]want{
				{"first node launched", upWithin, firstBought},
				{"first node ready", upWithin, firstReady},
				{fmt.Sprintf("all %d pods running", inflated), upWithin, running("inflate", inflated)},
			},
		},
		{
			fmt.Sprintf("ask for more than the limits allow: %d pods of general, %d builds", websites, builds),
			all(apply("general-pool.yaml", "ci-runners.yaml"), scale("web", websites)),
			[]want{
				{"gitlab-runners is full, pending builds report it", upWithin, full("builds", builds, "gitlab-runners")},
				{"general is full, pending pods report it", upWithin, full("web", websites, "general")},
				{fmt.Sprintf("all %d builds finished", builds), jobWithin, finished("builds", builds)},
			},
		},
		{
			"scale everything to 0",
			all(scale("inflate", 0), scale("web", 0), removeKind("Job", "ci-runners.yaml")),
			[]want{
				{"all pods gone", downWithin, noPods},
				{"all nodes gone", downWithin, noMachines},
			},
		},
	}
	if provider == session.Azure {
		out = slices.Insert(out, 2, interruption())
	}
	return out
}

// interruption makes the cloud interrupt a spot instance with pods.
func interruption() step {
	taken := ""
	return step{
		"Azure takes a spot machine back",
		func(ctx context.Context, st *stage) error {
			for _, m := range st.source.View().Machines {
				if m.CapacityType == "spot" && m.Pods > 0 {
					taken = m.Node
					return st.session.Preempt(ctx, taken)
				}
			}
			return errors.New("no pod runs on a spot machine")
		},
		[]want{
			{"the machine is gone", downWithin, func(v *fleet.View) string {
				if slices.ContainsFunc(v.Machines, func(m fleet.Machine) bool { return m.Node == taken }) {
					return taken + " is still there"
				}
				return ""
			}},
			{fmt.Sprintf("all %d pods running again", inflated), downWithin, running("inflate", inflated)},
		},
	}
}

func poolsReady(v *fleet.View) string {
	if len(v.Pools) == 0 {
		return "there is no NodePool"
	}
	for _, p := range v.Pools {
		if !p.Ready {
			return fmt.Sprintf("NodePool %s is not ready: %s", p.Name, cmp.Or(p.Reason, "waiting for its first reconcile"))
		}
	}
	return ""
}

func firstBought(v *fleet.View) string {
	if len(v.Bought) == 0 {
		return "no node was launched" + refusals(v)
	}
	return ""
}

func firstReady(v *fleet.View) string {
	if v.Count(fleet.Ready) == 0 {
		return fmt.Sprintf("none of %d nodes is ready", len(v.Machines))
	}
	return ""
}

func running(workload string, pods int) func(*fleet.View) string {
	return func(v *fleet.View) string {
		if w := v.Workload(workload); w.Running != pods {
			return fmt.Sprintf("%d of %d pods of %s run, %d start, %d wait%s", w.Running, pods, workload, w.Starting, w.Waiting, refusals(v))
		}
		return ""
	}
}

func finished(workload string, pods int) func(*fleet.View) string {
	return func(v *fleet.View) string {
		if w := v.Workload(workload); w.Finished != pods {
			return fmt.Sprintf("%d of %d pods of %s have finished, %d run, %d wait", w.Finished, pods, workload, w.Running, w.Waiting)
		}
		return ""
	}
}

// full returns a check that some of the workload's pods run, that the others wait, and that the events of all
// waiting pods name a limit of the pool.
func full(workload string, pods int, pool string) func(*fleet.View) string {
	return func(v *fleet.View) string {
		w := v.Workload(workload)
		told := 0
		for why, n := range w.Refused {
			if namesLimit(why, pool) {
				told += n
			}
		}
		switch {
		case w.Pods() < pods:
			return fmt.Sprintf("%s has %d of %d pods", workload, w.Pods(), pods)
		case w.Running == 0 || w.Starting > 0:
			return fmt.Sprintf("%d of %d pods of %s run%s", w.Running, pods, workload, refusals(v))
		case w.Waiting == 0:
			return fmt.Sprintf("all pods of %s run: the limits of %s did not hold", workload, pool)
		case told < w.Waiting:
			return fmt.Sprintf("%d of the %d waiting pods of %s have an event that names the limits of %s%s", told, w.Waiting, workload, pool, refusals(v))
		}
		return ""
	}
}

// namesLimit reports whether a rejection, which has a part for each pool, blames the limits of this one.
func namesLimit(refusal, pool string) bool {
	for part := range strings.SplitSeq(refusal, "nodepool ") {
		if strings.HasPrefix(part, pool+":") && strings.Contains(part, "limits") {
			return true
		}
	}
	return false
}

func noPods(v *fleet.View) string {
	if len(v.Workloads) == 0 {
		return ""
	}
	all := v.Totals()
	return fmt.Sprintf("%d pods are left", all.Pods())
}

func noMachines(v *fleet.View) string {
	if len(v.Machines) == 0 {
		return ""
	}
	var left []string
	for _, m := range v.Machines[:min(len(v.Machines), 5)] {
		left = append(left, fmt.Sprintf("%s (%s, %d pods)", m.Name, m.State, m.Pods))
	}
	if more := len(v.Machines) - len(left); more > 0 {
		left = append(left, fmt.Sprintf("%d more", more))
	}
	return "left are " + strings.Join(left, ", ")
}

// refusals quotes what the autoscaler said about pods that wait.
func refusals(v *fleet.View) string {
	said := map[string]bool{}
	for _, w := range v.Workloads {
		for why := range w.Refused {
			said[why] = true
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "; the autoscaler says: " + strings.Join(slices.Sorted(maps.Keys(said)), " | ")
}
