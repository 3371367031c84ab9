// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"karpenter/kube/pods"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 10 * time.Second
	// leastWorkers is the parallelism that the base rate of a limiter is for.
	leastWorkers = 100
)

// limiter paces retries: exponentially per item, and all items together at
// perSecond for leastWorkers, more in proportion to workers.
func limiter[T comparable](workers, perSecond int) workqueue.TypedRateLimiter[T] {
	qps := (workers*perSecond + leastWorkers - 1) / leastWorkers
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](backoffMin, backoffMax),
		&workqueue.TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(qps), 10*qps)},
	)
}

// pace returns the time until the next pass of a drain that waits for the pods:
// a sixtieth of its duration so far, between drainPoll and drainPollMost, and
// at most until one of the pods has to be forced.
func pace(s *scope, waiting []*corev1.Pod) time.Duration {
	wait := min(s.now.Sub(s.node.DeletionTimestamp.Time)/60, drainPollMost)
	for _, p := range waiting {
		if grace := p.Spec.TerminationGracePeriodSeconds; s.deadline != nil && grace != nil && !pods.Terminating(p) {
			wait = min(wait, s.deadline.Add(-inSeconds(*grace)).Sub(s.now))
		}
	}
	return max(wait, drainPoll)
}
