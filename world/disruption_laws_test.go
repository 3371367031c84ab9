// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// consolidateAfter of the pools that laws are about.
func consolidateAfter() map[string]time.Duration {
	return map[string]time.Duration{"p0": 20 * time.Second, "p1": 0}
}

// What is said for and against taking nodes away is what the facts of this moment
// say, whatever has happened and however time has passed.
func TestDisruptionIsOfThePresent(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			w, f := emptyWorld(), newFacts()
			for step := range 150 {
				f.change(r, w)
				s := w.Snapshot(scenario.DefaultNow().Add(time.Duration(step) * time.Second))
				for i := range s.Nodes {
					n := &s.Nodes[i]
					if diff := cmp.Diff(f.disruption(n, s.Now), said(n)); diff != "" {
						t.Fatalf("after step %d, %s (-facts +snapshot):\n%s", step, n.Name, diff)
					}
				}
			}
		})
	}
}

// word is NodeDisruption without texts and costs, and who may move.
type word struct {
	Blocked, Held, Settling, Fresh, Consolidatable, Deadline bool
	Drifted                                                  time.Time
	Movable                                                  []string // UIDs, sorted
}

func said(n *model.Node) word {
	d := &n.Disruption
	out := word{
		Blocked: d.Blocked != "", Held: d.Held != "", Settling: d.Settling, Fresh: d.Fresh,
		Consolidatable: d.Consolidatable, Deadline: d.Deadline, Drifted: d.Drifted,
	}
	for _, pending := range n.Movable {
		for _, p := range pending.Pods {
			out.Movable = append(out.Movable, p.UID)
		}
	}
	slices.Sort(out.Movable)
	return out
}

// disruption looks everything up that is to be said of the node.
func (f *facts) disruption(n *model.Node, now time.Time) word {
	c, managed := f.claims[n.Claim]
	if !managed {
		return word{Blocked: true}
	}
	node := nodeOf(f, n.Claim)
	ready := node != "" && f.nodes[node].Labels[model.LabelInitialized] == "true"
	out := word{Blocked: !ready || c.Deleting || f.nodes[node].Deleting, Drifted: c.Drifted, Deadline: c.Deadline}
	after := consolidateAfter()[n.Pool]
	out.Settling = ready && after > 0 && !c.QuietSince.IsZero() && now.Sub(c.QuietSince) < after
	out.Consolidatable = c.Consolidatable && !out.Settling
	out.Fresh = now.Before(c.FreshUntil)
	if !ready || c.Deleting {
		return out
	}
	for _, p := range f.pods {
		if p.Node != node || p.Terminal {
			continue
		}
		budgets := f.budgetsOf(p)
		protected := p.Protected && !p.Terminating && (p.ProtectedUntil.IsZero() || now.Before(p.ProtectedUntil))
		asked := !protected && !p.Terminating && len(budgets) > 0
		exempt := len(budgets) == 1 && budgets[0].UnreadyExempt && p.Unready
		several := len(budgets) > 1
		together := p.Group != "" && !p.Terminating && f.groups[p.Group].MinCount > 1
		if protected || together || asked && (several || budgets[0].Allowed == 0 && !exempt) {
			out.Held = true
		}
		if p.Reschedulable && !protected && !(asked && (several || budgets[0].Never && !exempt)) {
			out.Movable = append(out.Movable, p.UID)
		}
	}
	slices.Sort(out.Movable)
	return out
}

func (f *facts) budgetsOf(p world.Pod) []world.DisruptionBudget {
	var out []world.DisruptionBudget
	for _, b := range f.pdbs {
		if p.Namespace == b.Namespace && p.Labels["app"] == b.Selector {
			out = append(out, b)
		}
	}
	return out
}

// A node whose pods stay has the same slices in the next Snapshot, also when it
// has changed otherwise, so that no one needs to compare what they hold.
func TestUnchangedNodesShare(t *testing.T) {
	w := fill(3, 4)
	before := w.Snapshot(scenario.DefaultNow())
	w.SetPod(benchPod("more", "ni00001", 3))
	w.Nominate("ni00000", scenario.DefaultNow().Add(time.Minute))
	after := w.Snapshot(scenario.DefaultNow())
	for i, want := range []bool{true, false, true} {
		a, b := &before.Nodes[i], &after.Nodes[i]
		if len(a.Movable) == 0 || len(a.Labels) == 0 || len(a.Requested) == 0 {
			t.Fatalf("node %s has nothing to share", a.Name)
		}
		if moved, used := &a.Movable[0] == &b.Movable[0], &a.Requested[0] == &b.Requested[0]; moved != want || used != want {
			t.Errorf("node %s shares what moves: %t, what is used: %t; want %t", a.Name, moved, used, want)
		}
		if &a.Labels[0] != &b.Labels[0] || &a.Allocatable[0] != &b.Allocatable[0] {
			t.Errorf("node %s does not share its labels and allocatable resources", a.Name)
		}
	}
	if after.Nodes[0].Disruption.Blocked == "" {
		t.Error("a nominated node is not blocked")
	}
}
