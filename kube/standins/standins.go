// SPDX-License-Identifier: Apache-2.0

// Package standins has what controllers share for whose objects pods stand in that do not
// exist: CapacityBuffers and ProvisioningRequests.
//
//	Base   the world knows of all objects before anything is planned, one reading at a time
//	Fates  what a plan has for the pods
//	Write  the status of an object
package standins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karpenter/model"
)

const (
	// RefreshAfter is how long until an object is looked at again without a reason.
	RefreshAfter = 30 * time.Second
	// AgainAfter is how long until it is after someone else has written it meanwhile.
	AgainAfter = time.Second

	hydrateAgain = time.Second // until objects are listed again that could not be
)

// Queue is that of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Base is embedded in the controller of such objects. The zero value is ready.
type Base struct {
	hydrated atomic.Bool

	mu      sync.Mutex
	reading chan struct{} // held from reading an object until the world knows, so that the latest reading is what the world knows
	queue   Queue         // nil until the controller runs
}

// Hydrated reports whether the world knows of all objects that existed when the process
// started.
func (b *Base) Hydrated() bool { return b.hydrated.Load() }

// Hydrate has read, which is to make the world know of the objects there are, called until it
// succeeds. The objects are named in the log.
func (b *Base) Hydrate(ctx context.Context, objects string, read func(context.Context) error) {
	_ = wait.PollUntilContextCancel(ctx, hydrateAgain, true, func(ctx context.Context) (bool, error) {
		err := b.HydrateOnce(ctx, read)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, fmt.Sprintf("cannot read the %s; planning waits until it can read them", objects))
		}
		return err == nil, nil
	})
}

// HydrateOnce is one call of Hydrate.
func (b *Base) HydrateOnce(ctx context.Context, read func(context.Context) error) error {
	if b.hydrated.Load() {
		return nil
	}
	if err := read(ctx); err != nil {
		return err
	}
	b.hydrated.Store(true)
	return nil
}

// Source is the source by which the Base gets to know the queue of the controller.
func (b *Base) Source() source.Source {
	return source.Func(func(_ context.Context, queue Queue) error {
		b.Use(queue)
		return nil
	})
}

// Use has the Base put objects into the queue.
func (b *Base) Use(queue Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = queue
}

// LookAt has the object looked at once the controller runs.
func (b *Base) LookAt(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue != nil {
		b.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// Turn waits until no one else reads an object. It is no lock, since the API is asked
// meanwhile.
func (b *Base) Turn(ctx context.Context) (done func(), err error) {
	b.mu.Lock()
	if b.reading == nil {
		b.reading = make(chan struct{}, 1)
	}
	turn := b.reading
	b.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write patches the status of the object from what is stored to what is next. It reports
// false if the object is to be looked at again after AgainAfter instead.
func Write(ctx context.Context, c client.StatusClient, stored, next client.Object) (bool, error) {
	err := c.Status().Patch(ctx, next, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Fate is what a plan has for a pod.
type Fate struct {
	Node     string         // it has a place on; "" = one that the plan launches, or none
	There    bool           // the node runs pods already
	Launched bool           // it has a place on a node that the plan launches
	Why      *model.Verdict // it has no place
}

// Fates calls each for the pods of the plan that stand in for something.
func Fates(s *model.Snapshot, plan *model.Plan, each func(model.Pod, Fate)) {
	tell := func(p model.Pod, f Fate) {
		if p.Buffer != "" {
			each(p, f)
		}
	}
	for _, p := range plan.Placements {
		i, found := slices.BinarySearchFunc(s.Nodes, p.Node, func(n model.Node, name string) int { return strings.Compare(n.Name, name) })
		tell(p.Pod, Fate{Node: p.Node, There: found && s.Nodes[i].Initialized})
	}
	for i := range plan.Launches {
		for _, p := range plan.Launches[i].Pods {
			tell(p, Fate{Launched: true})
		}
	}
	for i := range plan.Verdicts {
		for _, p := range plan.Verdicts[i].Pods {
			tell(p, Fate{Why: &plan.Verdicts[i]})
		}
	}
}
