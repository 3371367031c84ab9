// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/kube/convert"
	"karpenter/kube/optional"
	"karpenter/world"
)

const (
	// refreshAfter is the time after which a buffer is reconciled again without
	// an event.
	refreshAfter = 30 * time.Second
	// againAfter is how long to wait after a conflict before a status is
	// written again.
	againAfter = time.Second
	// hydrateAgain is how long to wait before buffers are listed again after a
	// failure.
	hydrateAgain = time.Second
)

// World is the part of the cluster's state that buffers change.
type World interface {
	// SetBuffer replaces the pods that stand in for a buffer, namespace/name.
	SetBuffer(buffer string, pods []world.Pod)
	// DeleteBuffer removes them.
	DeleteBuffer(buffer string)
}

// Reconciler is the controller capacitybuffer. The exported fields are required
// and do not change once it runs.
type Reconciler struct {
	Client  client.Client
	World   World
	Convert convert.Converter
	Clock   clock.PassiveClock
	// Limits are what the pods of all buffers of one namespace may request
	// together; a resource that is absent is not limited. May be nil.
	Limits corev1.ResourceList

	hydrated atomic.Bool
	// reading is held from reading a buffer until the world has it, so that the
	// world always has the latest reading.
	reading chan struct{}
	shares  shares // guarded by reading

	mu       sync.Mutex
	outcomes map[string]outcome                                      // of the latest pass, by buffer
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the controller runs
}

// Hydrated reports whether the world knows of all buffers that existed when the
// process started.
func (r *Reconciler) Hydrated() bool { return r.hydrated.Load() }

// Start passes all existing buffers to the world. It implements
// manager.Runnable.
func (r *Reconciler) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, hydrateAgain, true, func(ctx context.Context) (bool, error) {
		err := r.hydrate(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "cannot read the capacity buffers; planning waits until it can read them")
		}
		return err == nil, nil
	})
	return nil
}

func (r *Reconciler) hydrate(ctx context.Context) error {
	if r.hydrated.Load() {
		return nil
	}
	list := &v1beta1.CapacityBufferList{}
	if err := r.Client.List(ctx, list); errors.Is(err, optional.ErrUnread) {
		log.FromContext(ctx).Error(err, "planning without capacity buffers until it can read them")
	} else if err != nil {
		return fmt.Errorf("list capacity buffers: %w", err)
	}
	// Those that come first get their share first, so that no share changes.
	slices.SortFunc(list.Items, func(a, b v1beta1.CapacityBuffer) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		if _, _, err := r.take(ctx, client.ObjectKeyFromObject(&list.Items[i])); err != nil {
			return err
		}
	}
	r.hydrated.Store(true)
	return nil
}

// Reconcile updates one buffer: first its pods in the world, then its status.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored, found, err := r.take(ctx, request.NamespacedName)
	if err != nil || stored == nil {
		return reconcile.Result{}, err
	}
	buffer := stored.DeepCopy()
	r.describe(buffer, found)
	if !equality.Semantic.DeepEqual(stored.Status, buffer.Status) {
		err := r.Client.Status().Patch(ctx, buffer, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return reconcile.Result{RequeueAfter: againAfter}, nil
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("patch status of capacity buffer %s: %w", request, err)
		}
	}
	if found.invalid {
		return reconcile.Result{}, reconcile.TerminalError(errors.New(found.message))
	}
	return reconcile.Result{RequeueAfter: refreshAfter}, nil
}

// turn waits until no other reconcile reads a buffer. It is not a mutex,
// because the holder makes API calls and the wait ends with ctx.
func (r *Reconciler) turn(ctx context.Context) (done func(), err error) {
	r.mu.Lock()
	if r.reading == nil {
		r.reading = make(chan struct{}, 1)
	}
	turn := r.reading
	r.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take reads the buffer and passes its pods to the world. It returns a nil
// buffer if the buffer no longer exists.
func (r *Reconciler) take(ctx context.Context, key client.ObjectKey) (*v1beta1.CapacityBuffer, *resolution, error) {
	done, err := r.turn(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	buffer := &v1beta1.CapacityBuffer{}
	err = r.Client.Get(ctx, key, buffer)
	if apierrors.IsNotFound(err) || err == nil && buffer.DeletionTimestamp != nil {
		r.share(key, nil)
		r.World.DeleteBuffer(key.String())
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read capacity buffer %s: %w", key, err)
	}
	found, err := r.resolve(ctx, buffer)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve capacity buffer %s: %w", key, err)
	}
	var a *ask
	if wanted := len(found.pods); wanted > 0 {
		a = &ask{created: buffer.CreationTimestamp.Time, each: found.each, wanted: wanted}
	}
	if granted := r.share(key, a); granted < len(found.pods) {
		found.limit(granted, r.Limits)
	}
	r.World.SetBuffer(key.String(), found.pods)
	return buffer, found, nil
}

// share returns how many pods of the buffer fit the limits of its namespace. It
// enqueues other buffers whose share changes because of that.
func (r *Reconciler) share(key client.ObjectKey, a *ask) int {
	if r.shares == nil {
		r.shares = shares{}
	}
	granted, changed := r.shares.set(key.Namespace, key.Name, a, r.limits())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range changed {
		if r.queue != nil {
			r.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: name}})
		}
	}
	return granted
}
