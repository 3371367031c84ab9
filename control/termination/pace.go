package termination

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
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
