// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/kube/pods"
)

// mustForce reports whether the pod has to be deleted now so that its own
// grace ends by the deadline. A terminating pod is deleted again when it would
// end after the deadline and can still be made to end sooner.
func mustForce(p *corev1.Pod, deadline *time.Time, now time.Time) bool {
	if deadline == nil {
		return false
	}
	if pods.Terminating(p) {
		end := p.DeletionTimestamp.Time
		return end.After(*deadline) && end.After(now.Add(forcedGrace(*deadline, now)))
	}
	if p.Spec.TerminationGracePeriodSeconds == nil {
		return false
	}
	return now.After(deadline.Add(-inSeconds(*p.Spec.TerminationGracePeriodSeconds)))
}

// inSeconds returns a duration of so many seconds. The API server accepts more seconds than a duration
// can have; those are 292 years.
func inSeconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(max(min(n, most), -most)) * time.Second
}

// forcedGrace is the grace of a pod that is forced at now: what is left until
// the deadline in whole seconds, and at least one.
func forcedGrace(deadline, now time.Time) time.Duration {
	return max(deadline.Sub(now).Truncate(time.Second), time.Second)
}

// sooner returns the earlier of two deadlines, nil being never.
func sooner(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}
