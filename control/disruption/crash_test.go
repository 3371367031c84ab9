// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// TestCrashAnywhere replaces two drifted nodes by one command in a process that
// ends before its n-th write, for each n, and lets the next process go on. It
// always ends with two new nodes and nothing else, and there are never fewer
// than two nodes for the pods, nor more than four.
func TestCrashAnywhere(t *testing.T) {
	crashes := 0
	for n := 0; ; n++ {
		crashed := false
		t.Run(fmt.Sprint(n), func(t *testing.T) { crashed = crashAfter(t, n) })
		if !crashed {
			break
		}
		crashes++
	}
	// Two taints, two conditions, two claims, two deletions.
	if crashes != 8 {
		t.Errorf("the process crashed in %d ways, want one for each of 8 writes", crashes)
	}
}

// crashAfter reports whether the process crashed at all.
func crashAfter(t *testing.T, writes int) (crashed bool) {
	s := newStage(t)
	for _, line := range []string{"pool general budget=100%", "node n1 drifted", "node n2 drifted", "pod web node=n1", "pod db node=n2"} {
		s.declare(line)
	}
	s.loop.Decide = naive
	s.writes.Store(int64(writes))
	for range 60 {
		if said := s.pass(); !strings.HasPrefix(said, "error") {
			s.noStrayMarks()
		}
		if s.refused.Swap(false) {
			crashed = true
			s.restart()
			s.loop.Decide = naive
		}
		s.aliveAndWell()
		left := s.writes.Swap(-1)
		s.kubelets()
		s.writes.Store(left)
		s.clock.Step(time.Second)
	}
	if got, want := s.show(), 2; strings.Count(got, "\n") != want || strings.Contains(got, " ") || strings.Contains(got, "n1\n") || strings.Contains(got, "n2\n") {
		t.Errorf("it ends with\n%swant two new nodes that nothing is said of", got)
	}
	return crashed
}

// aliveAndWell fails the test if pods have too few nodes, or there are too many.
func (s *stage) aliveAndWell() {
	s.t.Helper()
	ready, all := 0, 0
	for _, c := range s.claims() {
		if c.DeletionTimestamp != nil {
			continue
		}
		all++
		if s.nodeOf(&c).Labels[v1.NodeInitializedLabelKey] == "true" {
			ready++
		}
	}
	if ready < 2 || all > 4 {
		s.t.Errorf("%d nodes of which %d are ready", all, ready)
	}
}

// noStrayMarks fails the test if anything says of a node that it is to go, and
// no one is about to take it away.
func (s *stage) noStrayMarks() {
	s.t.Helper()
	for _, c := range s.claims() {
		tainted := len(s.nodeOf(&c).Spec.Taints) > 0 || conditions.Get(&c, v1.DisruptionReasonCondition) != nil
		if tainted && c.DeletionTimestamp == nil && s.loop.executing[c.Name] == nil {
			s.t.Errorf("%s is marked", c.Name)
		}
	}
}

// boots is how many seconds an instance takes to join.
const boots = 3

// kubelets has claims join that are old enough, and ends those that are being deleted; their
// pods find another node.
func (s *stage) kubelets() {
	for _, c := range s.claims() {
		switch {
		case c.DeletionTimestamp != nil:
			n := s.nodeOf(&c)
			s.lose(c.Name)
			if n.UID != "" {
				s.must(s.client.Delete(s.t.Context(), n))
			}
			pods := &corev1.PodList{}
			s.must(s.client.List(s.t.Context(), pods))
			for i := range pods.Items {
				if pods.Items[i].Spec.NodeName == n.Name {
					s.must(s.client.Delete(s.t.Context(), &pods.Items[i]))
				}
			}
		case c.Status.ProviderID == "" && s.ages[c.Name] < boots:
			s.ages[c.Name]++
		case c.Status.ProviderID == "":
			s.joins(c.Name, true)
			s.must(s.client.Create(s.t.Context(), &corev1.Pod{ // keeps it from being empty
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "on-" + c.Name}, Spec: corev1.PodSpec{NodeName: "n-" + c.Name},
			}))
		case conditions.IsTrue(&c, v1.InitializedCondition) && conditions.Get(&c, v1.ConsolidatableCondition) == nil:
			c.StatusConditions(s.clock.Now()).SetTrue(v1.ConsolidatableCondition)
			s.must(s.client.Status().Update(s.t.Context(), &c))
		}
	}
}

// naive replaces n1 and n2, one for one: by nodes there are, or by new ones as
// long as none is on its way.
func naive(s *model.Snapshot) *model.Plan {
	var old []model.Target
	var spare []string
	for _, n := range s.Nodes {
		switch {
		case n.Deleting:
		case !n.Initialized:
			return &model.Plan{}
		case n.Name == "n1" || n.Name == "n2":
			old = append(old, model.Target{Node: n.Name, Claim: n.Claim})
		default:
			spare = append(spare, n.Name)
		}
	}
	for _, n := range s.Nodes { // those of nodes that are going already are taken
		if n.Deleting && len(spare) > 0 {
			spare = spare[1:]
		}
	}
	plan := &model.Plan{}
	for len(old) > 0 && len(spare) > 0 {
		plan.Commands = append(plan.Commands, model.Command{
			Reason: model.Drifted, Nodes: old[:1], Moves: []model.Placement{{Pod: model.Pod{Name: "p", From: old[0].Node}, Node: spare[0]}},
		})
		old, spare = old[1:], spare[1:]
	}
	if len(old) == 0 {
		return plan
	}
	c := model.Command{Reason: model.Drifted, Nodes: old}
	for range old {
		c.Launches = append(c.Launches, model.Launch{Pool: "general"})
	}
	plan.Commands = append(plan.Commands, c)
	return plan
}
