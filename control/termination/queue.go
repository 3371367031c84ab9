// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karpenter/kube/events"
	"karpenter/kube/pods"
)

// Key names a queued pod. Another pod of the same name has another Key.
type Key struct {
	Namespace, Name string
	UID             types.UID
}

func keyOf(p *corev1.Pod) Key { return Key{p.Namespace, p.Name, p.UID} }

// entry is how a queued pod is to leave.
type entry struct {
	// deadline is when the pod must be gone; nil = it has time.
	deadline *time.Time
	// stays says that the pod is only evicted, and stays if it is still there at
	// the deadline: its node reboots.
	stays bool
	// requested says that an EvictionRequest asks for the eviction of the pod.
	requested bool
}

// supersedes reports whether the entry replaces the old one. An entry that
// forces a pod is never replaced by one that lets it stay.
func (e entry) supersedes(old entry) bool {
	if e.stays != old.stays {
		return old.stays
	}
	return sooner(old.deadline, e.deadline) != old.deadline
}

// Queue holds the pods that are to leave their nodes. It is safe for
// concurrent use.
type Queue struct {
	// Surge is set before the queue is registered. The zero value evicts all pods.
	Surge Surge
	// Requests is set before the queue is registered. The zero value uses the
	// Eviction API only.
	Requests Requests

	client  client.Client
	events  events.Recorder
	clock   clock.PassiveClock
	metrics *Metrics
	// Evicted is called for each pod that was evicted, or deleted at its
	// deadline. It must not block; nil means no call. Set it before the queue is
	// registered.
	Evicted func(*corev1.Pod)
	backoff workqueue.TypedRateLimiter[Key] // between attempts on a pod that may not leave yet

	unserved unserved

	mu      sync.Mutex
	entries map[Key]entry
	work    workqueue.TypedRateLimitingInterface[Key]
}

// NewQueue returns an empty queue. Pods may be added before it is registered;
// they are worked on from then on.
func NewQueue(c client.Client, recorder events.Recorder, clock clock.PassiveClock, metrics *Metrics) *Queue {
	return &Queue{
		client: c, events: recorder, clock: clock, metrics: metrics,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](backoffMin, backoffMax),
		entries: map[Key]entry{},
	}
}

// Register adds the controller to the manager.
func (q *Queue) Register(mgr manager.Manager, workers int) error {
	c, err := controller.NewTyped("eviction-queue", mgr, controller.TypedOptions[Key]{
		Reconciler:              q,
		MaxConcurrentReconciles: workers,
		RateLimiter:             limiter[Key](workers, 100),
	})
	if err != nil {
		return err
	}
	return c.Watch(source.TypedFunc[Key](q.start))
}

func (q *Queue) start(_ context.Context, work workqueue.TypedRateLimitingInterface[Key]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work = work
	for key := range q.entries {
		work.Add(key)
	}
	return nil
}

// Add queues the pods. A pod that is queued already keeps the earlier of its
// deadlines; nil is none.
func (q *Queue) Add(deadline *time.Time, added ...*corev1.Pod) {
	q.add(entry{deadline: deadline}, added)
}

func (q *Queue) add(e entry, added []*corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range added {
		key := keyOf(p)
		old, queued := q.entries[key]
		if queued && !e.supersedes(old) {
			continue
		}
		e.requested = old.requested
		q.entries[key] = e
		if q.work != nil {
			q.work.Add(key)
		}
	}
}

// Has reports whether this very pod is queued.
func (q *Queue) Has(p *corev1.Pod) bool {
	_, ok := q.entry(keyOf(p))
	return ok
}

func (q *Queue) entry(key Key) (entry, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.entries[key]
	return e, ok
}

func (q *Queue) drop(key Key) reconcile.Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.entries, key)
	q.backoff.Forget(key)
	return reconcile.Result{}
}

func (q *Queue) later(key Key) reconcile.Result {
	return reconcile.Result{RequeueAfter: q.backoff.When(key)}
}

// Reconcile makes one attempt to evict the pod.
func (q *Queue) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	e, queued := q.entry(key)
	if !queued {
		return reconcile.Result{}, nil
	}
	pod := &corev1.Pod{}
	err := q.client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, pod)
	if apierrors.IsNotFound(err) || err == nil && pod.UID != key.UID {
		return q.drop(key), nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	now := q.clock.Now()
	switch {
	case pods.Terminal(pod):
		return q.drop(key), nil
	case e.stays && e.deadline != nil && !now.Before(*e.deadline):
		if err := q.withdraw(ctx, pod); err != nil {
			return reconcile.Result{}, err
		}
		return q.drop(key), nil
	case !e.stays && mustForce(pod, e.deadline, now):
		return q.force(ctx, pod, *e.deadline)
	case !pods.Active(pod):
		if e.requested {
			return q.answered(ctx, pod)
		}
		return q.drop(key), nil
	case !pods.Evictable(pod, now):
		return q.later(key), nil
	}
	why, err := q.surge(ctx, pod)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case why != "":
		return q.refused(ctx, pod, why)
	}
	if q.requestable(pod) {
		if asked, err := q.request(ctx, pod); err != nil {
			return reconcile.Result{}, err
		} else if asked {
			if !q.asked(key) { // called off meanwhile
				return reconcile.Result{}, q.withdraw(ctx, pod)
			}
			return q.later(key), nil
		}
	}
	return q.evict(ctx, pod)
}

// asked notes that an EvictionRequest asks for the eviction of the pod. It
// reports false if the pod is not queued any more.
func (q *Queue) asked(key Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, queued := q.entries[key]
	if queued {
		e.requested = true
		q.entries[key] = e
	}
	return queued
}
