// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queue is the queue of one controller. It keeps what controller-runtime's
// priority queue keeps: each item once, with the earliest time at which it may
// be handed out, and none while it is being worked on. Unlike there, an item is
// handed out when the run says so.
type queue[T comparable] struct {
	controller string
	limiter    workqueue.TypedRateLimiter[T]

	mu      sync.Mutex
	handed  *sync.Cond // signalled when next is set or the queue is shut down
	entries []entry[T] // in the order they were added
	working map[T]bool
	next    *T
	idle    int // workers that wait for an item
	asked   bool
	shut    bool
}

type entry[T comparable] struct {
	item T
	at   time.Time // zero = at once
}

// requests is what a run sees of a queue.
type requests interface {
	name() string
	// ready returns how many items can be handed out now.
	ready() int
	// hand hands out one of them and returns its name.
	hand(i int) string
	// due is when the next item will be ready that is not yet; zero = there is none.
	due() time.Time
	// begun reports whether anyone has ever waited for an item.
	begun() bool
}

func newQueue[T comparable](controller string, limiter workqueue.TypedRateLimiter[T]) *queue[T] {
	q := &queue[T]{controller: controller, limiter: limiter, working: map[T]bool{}}
	q.handed = sync.NewCond(&q.mu)
	return q
}

func (q *queue[T]) name() string { return q.controller }

func (q *queue[T]) isReady(e entry[T], now time.Time) bool {
	return !q.working[e.item] && !e.at.After(now)
}

func (q *queue[T]) ready() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == 0 || q.shut {
		return 0
	}
	n, now := 0, time.Now()
	for _, e := range q.entries {
		if q.isReady(e, now) {
			n++
		}
	}
	return n
}

func (q *queue[T]) hand(i int) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for at, e := range q.entries {
		if !q.isReady(e, now) {
			continue
		}
		if i == 0 {
			q.entries = slices.Delete(q.entries, at, at+1)
			q.working[e.item] = true
			q.next = &e.item
			q.idle--
			q.handed.Signal()
			return fmt.Sprint(e.item)
		}
		i--
	}
	return ""
}

func (q *queue[T]) due() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due time.Time
	now := time.Now()
	for _, e := range q.entries {
		if e.at.After(now) && (due.IsZero() || e.at.Before(due)) {
			due = e.at
		}
	}
	return due
}

func (q *queue[T]) begun() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked
}

func (q *queue[T]) add(item T, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut {
		return
	}
	for i := range q.entries {
		if e := &q.entries[i]; e.item == item {
			if at.Before(e.at) {
				e.at = at
			}
			return
		}
	}
	q.entries = append(q.entries, entry[T]{item, at})
}

// Add implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) Add(item T) { q.add(item, time.Time{}) }

// AddAfter implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) AddAfter(item T, after time.Duration) {
	if after <= 0 {
		q.Add(item)
		return
	}
	q.add(item, time.Now().Add(after))
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) AddRateLimited(item T) { q.AddAfter(item, q.limiter.When(item)) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) Forget(item T) { q.limiter.Forget(item) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) NumRequeues(item T) int { return q.limiter.NumRequeues(item) }

// Len implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// Get implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) Get() (item T, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle++
	q.asked = true
	for q.next == nil && !q.shut {
		q.handed.Wait()
	}
	if q.next == nil {
		return item, true
	}
	item, q.next = *q.next, nil
	return item, false
}

// Done implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.working, item)
}

// ShutDown implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut = true
	q.handed.Broadcast()
}

// ShutDownWithDrain implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shut
}
