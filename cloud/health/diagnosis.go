// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud"
)

// aging is how much longer a node has to have waited to be repaired before a
// node whose policy is one rank higher.
const aging = 30 * time.Minute

// Diagnosis is the repair that a Node needs.
type Diagnosis struct {
	Condition corev1.NodeCondition // that governs
	Policy    cloud.RepairPolicy   // that governs
	Action    cloud.RepairAction
	Since     time.Time // when the governing policy's toleration ended
	// Bound bounds the drain, and BoundBy is the condition it comes from: the
	// shortest of all policies that apply. Nil = none of them sets one.
	Bound   *time.Duration
	BoundBy corev1.NodeConditionType
	// Score orders nodes: the higher goes first.
	Score float64
}

// finding is a policy that applies to a condition whose toleration is over.
type finding struct {
	condition corev1.NodeCondition
	policy    policy
	since     time.Time
}

// Diagnose returns the repair that the Node needs at the time, and false if it
// needs none. Tolerations count from floor at the earliest: when the last
// reboot ended, zero if there was none.
func (s *Policies) Diagnose(node *corev1.Node, now, floor time.Time) (Diagnosis, bool) {
	var due []finding
	for _, c := range node.Status.Conditions {
		begin := node.CreationTimestamp.Time
		for _, t := range []time.Time{c.LastTransitionTime.Time, floor} {
			if t.After(begin) {
				begin = t
			}
		}
		for _, p := range s.matches(c) {
			if since := begin.Add(p.Toleration); !since.After(now) {
				due = append(due, finding{c, p, since})
			}
		}
	}
	if len(due) == 0 {
		return Diagnosis{}, false
	}
	governing := slices.MinFunc(due, govern)
	out := Diagnosis{
		Condition: governing.condition, Policy: governing.policy.RepairPolicy, Action: governing.policy.Action, Since: governing.since,
	}
	slices.SortFunc(due, earlier)
	for _, f := range due {
		score := float64(s.rank[f.policy.Priority]) + float64(now.Sub(f.since))/float64(aging)
		out.Score = max(out.Score, score)
		if b := f.policy.TerminationGracePeriod; b != nil && (out.Bound == nil || *b < *out.Bound) {
			out.Bound, out.BoundBy = b, f.condition.Type
		}
	}
	return out, true
}

// matches returns the policies for the condition.
func (s *Policies) matches(c corev1.NodeCondition) []policy {
	specific, known := s.specific[pair{c.Type, c.Status}]
	if !known {
		return nil
	}
	var out []policy
	for _, p := range specific {
		if p.reason.MatchString(c.Reason) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		out = []policy{s.fallback}
	}
	return out
}

// govern orders findings by precedence: a replacement before a reboot, then by
// priority, then by how long they are due.
func govern(a, b finding) int {
	reboots := func(f finding) int {
		if f.policy.Action == cloud.RebootNode {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(reboots(a), reboots(b)), cmp.Compare(b.policy.Priority, a.policy.Priority), earlier(a, b))
}

func earlier(a, b finding) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.condition.Type, b.condition.Type))
}
