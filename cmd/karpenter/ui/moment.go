// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/explain"
	"karpenter/cmd/karpenter/plan"
	"karpenter/cmd/karpenter/record"
	"karpenter/cmd/karpenter/status"
	"karpenter/cmd/karpenter/top"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// Moment is what is known of a cluster at one time. Nothing in it may be modified.
type Moment struct {
	Title     string // the cluster or the file
	Source    string // cluster, recording or snapshot
	Situation scenario.Situation
	// Pods are all pods; nil = not known, as of a snapshot file, which names only
	// the pods that may be moved.
	Pods     []*corev1.Pod
	Pools    []*v1.NodePool
	View     *top.View   // nil = not known
	Happened []top.Entry // oldest first
	Record   record.Report
	Checks   []status.Check
	// Trouble says why this may be out of date; "" = it is not.
	Trouble string
}

// state is a Moment and what the planner says of it.
type state struct {
	Moment
	revision int
	plan     *model.Plan
	report   plan.Report
	cluster  explain.ClusterAnswer
	nodes    []node
	answers  map[string]explain.NodeAnswer // by name of the node
	offers   []offering
}

// decider returns a Decider with a planner of its own.
func decider(p model.Policy) plan.Decider {
	planner := &solve.Planner{}
	return plan.Decider{
		Decide: func(s *model.Snapshot) *model.Plan { return planner.Decide(s, p) },
		Place:  func(s *model.Snapshot) *model.Plan { return planner.Place(s, p) },
	}
}

// newState plans for the Moment.
func newState(m Moment, revision int) *state {
	s := m.Situation.Snapshot
	out := &state{Moment: m, revision: revision, answers: map[string]explain.NodeAnswer{}}
	d := decider(m.Situation.Policy)
	out.plan = d.Decide(s)
	fresh := out.plan // without nodes, it is the one from scratch
	out.report = plan.Of(s, plan.Decider{
		Decide: func(*model.Snapshot) *model.Plan { return out.plan },
		Place:  func(s *model.Snapshot) *model.Plan { fresh = d.Place(s); return fresh },
	})
	out.cluster = explain.OfCluster(s, func(*model.Snapshot) *model.Plan { return fresh })
	for i := range s.Nodes {
		out.answers[s.Nodes[i].Name], _ = explain.OfNode(s, out.plan, s.Nodes[i].Name)
	}
	out.nodes = out.listNodes()
	out.offers = offerings(s)
	return out
}

// now is the time of the Moment.
func (s *state) now() time.Time { return s.Situation.Snapshot.Now.UTC() }

// monthly returns dollars per month of dollars per hour.
func monthly(perHour float64) float64 { return perHour * plan.HoursPerMonth }
