// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

// fullCores is the number of cores from which parallelism no longer grows.
const fullCores = 60

// Cores returns how many cores a process may use that was given so many
// millicores: at least one.
func Cores(millicores int) int {
	return max((millicores+999)/1000, 1)
}

// Parallel returns how many reconciles to run at once on so many cores: least
// on one core, most from 60 cores on, and in proportion between them.
func Parallel(cores, least, most int) int {
	n := least + int(float64(most-least)/(fullCores-1)*float64(cores-1))
	return min(max(n, least), most)
}

// Bucket returns the rate and burst of retries for a controller that runs
// workers reconciles at once, given the rate for the least it would run.
func Bucket(leastQPS, least, workers int) (qps, burst int) {
	qps = (workers*leastQPS + least - 1) / least
	return qps, 10 * qps
}

// Backoff paces retries of one item: twice as long each time, from First to
// Most.
type Backoff struct{ First, Most time.Duration }

// Limiter paces retries: each item by its backoff, and all together by qps and
// burst.
func Limiter[T comparable](b Backoff, qps, burst int) workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](b.First, b.Most),
		&workqueue.TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(qps), burst)},
	)
}
