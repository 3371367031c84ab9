// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
)

const (
	// repeatedly is how many instances in a row have to fail to join for
	// replacements to be halted.
	repeatedly = 2
	// leastWait and mostWait bound the time from a failure to the next attempt.
	// The wait is as long as the time since the first failure.
	leastWait = time.Minute
	mostWait  = 10 * time.Minute
)

// trouble means that instances of a pool do not become nodes: several have
// failed, and none has succeeded since.
type trouble struct {
	since, last     time.Time // the first and the last failure known
	reason, message string
}

// troubleOf returns the trouble of the pool, or nil. It also reads the pool's
// conditions, so a restart loses little.
func troubleOf(pool *v1.NodePool, t tally, failed []time.Time) *trouble {
	var out *trouble
	blame := func(times []time.Time, reason, message string) {
		if out == nil {
			out = &trouble{since: times[0], reason: reason, message: message}
		}
		out.since = earlier(out.since, times[0])
		out.last = later(out.last, times[len(times)-1])
	}
	health := conditions.Get(pool, v1.NodeRegistrationHealthyCondition)
	if health != nil && health.Status == metav1.ConditionFalse && health.ObservedGeneration == pool.Generation {
		blame([]time.Time{health.LastTransitionTime.Time}, health.Reason, health.Message)
	}
	if len(failed) >= repeatedly || out != nil && len(failed) > 0 {
		blame(failed, v1.RegistrationFailedReason, "instances did not become nodes in time")
	}
	late := slices.DeleteFunc(slices.Clone(t.late), func(at time.Time) bool { return !at.After(t.joined) })
	if len(late) >= repeatedly {
		slices.SortFunc(late, time.Time.Compare)
		blame(late, v1.NodesNotInitializedReason, fmt.Sprintf("%d instances did not become nodes for pods within %s", len(late), lateAfter))
	}
	if out == nil {
		return nil
	}
	out.since = later(out.since, t.joined)
	last := out.last
	if halted := conditions.Get(pool, v1.RolloutHaltedCondition); halted != nil {
		last = later(last, halted.LastTransitionTime.Time) // earlier failures may be forgotten
	}
	if !t.joined.Before(last.Truncate(time.Second)) {
		return nil
	}
	return out
}

// editedAt returns when the pool or its node class was edited, or the zero time
// if an instance has succeeded or failed since then.
func editedAt(pool *v1.NodePool) time.Time {
	health := conditions.Get(pool, v1.NodeRegistrationHealthyCondition)
	if health == nil || health.Status != metav1.ConditionUnknown {
		return time.Time{}
	}
	return health.LastTransitionTime.Time
}

// halt returns the condition RolloutHalted, or nil for none, and how long it
// stays valid without an event, 0 for forever. With True, no node is replaced
// by instances of the pool. With Unknown, one node is replaced, as an attempt.
func halt(pool *v1.NodePool, t tally, x *trouble, now time.Time) (*metav1.Condition, time.Duration) {
	if x == nil {
		return nil, t.wait(now)
	}
	out := &metav1.Condition{Type: v1.RolloutHaltedCondition, Status: metav1.ConditionTrue, Reason: x.reason}
	if t.coming > 0 || t.replacing {
		out.Message = x.message + "; waiting for instances that are starting"
		return out, t.wait(now)
	}
	last, probing := x.last, false
	if standing := conditions.Get(pool, v1.RolloutHaltedCondition); standing != nil {
		last = later(last, standing.LastTransitionTime.Time)
		probing = standing.Status == metav1.ConditionUnknown && !x.last.After(standing.LastTransitionTime.Time)
	}
	next := last.Add(min(max(last.Sub(x.since), leastWait), mostWait))
	if left := next.Sub(now); left > 0 && !probing {
		out.Message = fmt.Sprintf("%s; next attempt at %s", x.message, next.UTC().Format(time.RFC3339))
		return out, left
	}
	out.Status, out.Reason = metav1.ConditionUnknown, v1.ProbingReason
	out.Message = x.message + "; replacing one node, to see whether instances become nodes again"
	return out, 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
