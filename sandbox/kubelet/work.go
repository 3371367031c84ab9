// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
)

const (
	minRetry       = 100 * time.Millisecond
	maxRetry       = 10 * time.Second
	requestTimeout = 15 * time.Second
)

// work is a queue of names and the pool of workers that bring them up to date.
type work struct {
	workers int
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[string]
	// sync brings one name up to date and returns when to look again; 0 is not before something changes.
	sync func(ctx context.Context, name string) (time.Duration, error)
}

func newWork(workers int, log *slog.Logger, sync func(context.Context, string) (time.Duration, error)) *work {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry)
	return &work{workers: workers, log: log, queue: workqueue.NewTypedRateLimitingQueue(limiter), sync: sync}
}

func (w *work) add(name string) { w.queue.Add(name) }

// run works until ctx is done and every worker has finished what it held.
func (w *work) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	var all sync.WaitGroup
	for range w.workers {
		all.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	all.Wait()
}

// next brings one name up to date; it reports whether there may be more. A conflict or an absent object is no error: the
// watch brings the news, and with it the name.
func (w *work) next(ctx context.Context) bool {
	name, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(name)
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	again, err := w.sync(request, name)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		if ctx.Err() == nil {
			w.log.Warn("will try again", "name", name, "error", err)
		}
		w.queue.AddRateLimited(name)
		return true
	}
	w.queue.Forget(name)
	if again > 0 {
		w.queue.AddAfter(name, again)
	}
	return true
}
