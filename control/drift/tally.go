// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
)

// lateAfter is how long an instance may take until its node is ready for pods.
// It is a minute less than it takes to give up replacing a node, so that
// nothing is begun in between.
const lateAfter = 9 * time.Minute

// tally is where the claims of a pool stand.
type tally struct {
	all       int
	left      int         // claims that are not what the pool asks for, going or not
	leaving   int         // those of them that are going, or whose replacement is under way
	coming    int         // claims as the pool asks for that are no nodes for pods yet, but may become such
	late      []time.Time // since when claims have been coming for too long
	joined    time.Time   // when the last of those that are became one; zero = none is
	replacing bool        // a drifted claim waits for its replacement
	patience  time.Time   // when the next of those that are coming is late; zero = none will be
}

// count tallies the claims. The pool carries its present hash.
func count(claims []v1.NodeClaim, pool *v1.NodePool, known v1.Labels, now time.Time) tally {
	t := tally{all: len(claims)}
	for i := range claims {
		claim := &claims[i]
		if conditions.IsTrue(claim, v1.DriftedCondition) || outdated(claim, pool, known) != "" && conditions.IsTrue(claim, v1.LaunchedCondition) {
			t.addOld(claim)
			continue
		}
		t.addNew(claim, now)
	}
	return t
}

func (t *tally) addOld(claim *v1.NodeClaim) {
	t.left++
	reason := conditions.Get(claim, v1.DisruptionReasonCondition)
	marked := reason != nil && reason.Status == metav1.ConditionTrue && reason.Reason == string(v1.DisruptionReasonDrifted)
	if marked || claim.DeletionTimestamp != nil {
		t.leaving++
	}
	t.replacing = t.replacing || marked && claim.DeletionTimestamp == nil
}

func (t *tally) addNew(claim *v1.NodeClaim, now time.Time) {
	if since, ok := isInitialized(claim); ok {
		if since.After(t.joined) {
			t.joined = since.Time
		}
		return
	}
	if claim.DeletionTimestamp != nil {
		return
	}
	limit := claim.CreationTimestamp.Add(lateAfter)
	switch isLate := !now.Before(limit); {
	case !isLate:
		t.coming++
		if t.patience.IsZero() || limit.Before(t.patience) {
			t.patience = limit
		}
	case conditions.IsTrue(claim, v1.RegisteredCondition):
		t.late = append(t.late, limit) // no one gives it up: it may stay so forever
	default:
		t.late = append(t.late, limit)
		t.coming++
	}
}

// wait returns how long it is until time alone changes the tally, 0 forever.
func (t *tally) wait(now time.Time) time.Duration {
	if t.patience.IsZero() {
		return 0
	}
	return t.patience.Sub(now)
}
