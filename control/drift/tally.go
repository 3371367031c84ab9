// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
)

// lateAfter is how long an instance may take until its node is ready for pods.
// It is a minute less than the time limit of a replacement, so that no
// replacement starts in between.
const lateAfter = 9 * time.Minute

// tally counts the claims of a pool by state.
type tally struct {
	all       int
	left      int         // claims that have drifted from the pool, being deleted or not
	leaving   int         // those of them that are being deleted, or whose replacement is under way
	coming    int         // claims that match the pool and are not ready for pods yet, but may become so
	late      []time.Time // since when claims have been coming for too long
	joined    time.Time   // when the latest claim became ready for pods; zero = none has
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
		t.late = append(t.late, limit) // no timeout deletes it: it may stay in this state forever
	default:
		t.late = append(t.late, limit)
		t.coming++
	}
}

// wait returns the time until the tally changes without an event, 0 for never.
func (t *tally) wait(now time.Time) time.Duration {
	if t.patience.IsZero() {
		return 0
	}
	return t.patience.Sub(now)
}
