// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"slices"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestGroupsDisplaceNoPods compares plans with those for the same situation without
// the pods of PodGroups (spec 46/95, 96): no more of the other pods stay pending. All
// pods have the same priority. Some plans must be for a group, and some without one.
func TestGroupsDisplaceNoPods(t *testing.T) {
	planned, refused := 0, 0
	situations(t, solvetest.Draw{Groups: true, Spread: true, Affinity: true, Reserved: true, Flight: true}, 300, func(s *model.Snapshot) []string {
		for i := range s.Pending {
			s.Pending[i].Shape.Priority = 0
			for j := range s.Pending[i].Pods {
				s.Pending[i].Pods[j].Planned = "" // a group that is planned keeps its place
			}
		}
		plan := solve.Decide(s, model.DefaultPolicy())
		var wrong []string
		alone := solve.Decide(withoutGroups(s), model.DefaultPolicy())
		if got, want := outside(s, plan), outside(s, alone); got > want {
			wrong = append(wrong, fmt.Sprintf("%d pods outside groups stay pending, and %d without the groups:\n%s", got, want, scenario.Text(s, alone)))
		}
		if pods(plan) > pods(alone) {
			planned++
		}
		if pods(plan) < pods(solve.Decide(ungrouped(s), model.DefaultPolicy())) {
			refused++
		}
		return wrong
	})
	t.Logf("%d plans have places for pods of groups, %d have fewer places than without the rules of groups", planned, refused)
	if planned < 10 || refused < 10 {
		t.Error("too few")
	}
}

// inTeam reports whether the pod is of a PodGroup that lacks pods or is rejected.
func inTeam(s *model.Snapshot, p model.Pod) bool {
	return slices.ContainsFunc(s.Groups, func(g model.PodGroup) bool {
		return g.Name == p.Group && (g.Refused != "" || solvetest.Lacking(s, g) > 0)
	})
}

// withoutGroups leaves out the pods of such groups.
func withoutGroups(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Pending = nil
	for _, pending := range s.Pending {
		pending.Pods = slices.DeleteFunc(slices.Clone(pending.Pods), func(p model.Pod) bool { return inTeam(s, p) })
		if len(pending.Pods) > 0 {
			out.Pending = append(out.Pending, pending)
		}
	}
	return &out
}

// ungrouped has every pod be an ordinary one.
func ungrouped(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Groups = nil
	return &out
}

// outside counts the pods that stay pending and are not of such groups.
func outside(s *model.Snapshot, plan *model.Plan) int {
	n := 0
	for _, v := range plan.Verdicts {
		for _, p := range v.Pods {
			if !inTeam(s, p) {
				n++
			}
		}
	}
	return n
}
