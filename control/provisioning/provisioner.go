// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "karpenter/api/v1"
	"karpenter/kube/confirm"
	"karpenter/kube/convert"
	"karpenter/kube/events"
	"karpenter/model"
	"karpenter/world"
)

const (
	// RetryAfter is the time until the next pass, without a trigger, after a
	// pass that left pods pending.
	RetryAfter = 10 * time.Second

	notReadyPoll = 200 * time.Millisecond // until the world is complete
	failureMin   = time.Second            // after a pass that failed; doubled each time
	failureMax   = 10 * time.Second
)

// World is the part of the cluster's state that provisioning needs.
type World interface {
	confirm.World // of claims that were Planned
	// Snapshot returns the cluster as it is now.
	Snapshot(now time.Time) *model.Snapshot
	// Planned and Placed record where the pods are planned: on a NodeClaim that
	// was just created, or on a node of a Snapshot.
	Planned(claim world.Claim, pods []model.Pod)
	Placed(node string, pods []model.Pod)
	// Holds returns pods for which no node of certain pools must be launched
	// now, because earlier nodes that were launched for them did not keep them.
	Holds(now time.Time) []world.Hold
	// Unplaced records that there is no place for the pods.
	Unplaced(pods []model.Pod)
	// Refused records which PodGroups have no place, and which have one. It returns the groups for
	// which nodes were launched without success, and the NodeClaims to delete.
	Refused(now time.Time, refused, placed []string) (failures []world.Failure, vain []string)
	// PodGroup returns the PodGroup of the name; without UID if there is none.
	PodGroup(name string) world.PodGroup
	// MarkForDeletion records that the NodeClaims are being deleted.
	MarkForDeletion(claims ...string)
	// Reserve grants nodes of a static pool within its limit, until they are
	// released.
	Reserve(pool string, limit, want int) (n int, release func())
	// Nominate protects the node from disruption until the given time.
	Nominate(node string, until time.Time)
}

// Catalogue updates the World with the instance types that can be launched now.
type Catalogue interface {
	Refresh(ctx context.Context) error
}

// Provisioner is the controller provisioner. It must run one pass at a time; its
// Replace and Move may be called meanwhile. The exported fields are required unless they say otherwise and do not change
// once it runs.
type Provisioner struct {
	Client    client.Client
	Live      client.Reader // the API server itself
	World     World
	Catalogue Catalogue
	Convert   convert.Converter
	// Decide makes the Plan whose Placements and Launches are carried out.
	Decide func(*model.Snapshot) *model.Plan
	// Ready reports whether the World has received every object that existed
	// when the process started. Until then, nothing is planned, because a node
	// with free capacity may not be known yet.
	Ready   func() bool
	Events  events.Recorder
	Clock   clock.PassiveClock
	Metrics *Metrics
	// Parallel is how many NodeClaims are created at once; 0 = many.
	Parallel int
	// Decided is called in each pass with the plan, before the plan is carried
	// out. It must not block or modify anything; nil means no call.
	Decided func(*model.Snapshot, *model.Plan)
	// Follow is called at the end of each pass with the nodes on which the pass
	// has placed pods, named as in the Snapshot. It must not block; nil means
	// no call.
	Follow func(nodes []string)
	// Launched is called in each pass that launches anything, with the launches
	// that were carried out and the names of their NodeClaims. It must not
	// block or modify anything; nil means no call.
	Launched func(s *model.Snapshot, p *model.Plan, launches []model.Launch, claims []string)
	// Done is called at the end of each pass with the plan. It must not block
	// or modify anything; nil means no call.
	Done func(*model.Snapshot, *model.Plan)

	ledger ledger

	batch *batch
	retry time.Time // when to make a pass without a trigger; zero = not
	told  told

	toldGroups told // by UID of PodGroup

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the controller runs
}

// New returns a Provisioner that collects triggers for the window. Its
// exported fields are the caller's to fill in.
func New(w Window) *Provisioner {
	return &Provisioner{batch: &batch{window: w}, told: told{}}
}

func (p *Provisioner) parallel() int { return cmp.Or(p.Parallel, defaultParallel) }

// Register adds the controller to the manager.
func (p *Provisioner) Register(mgr manager.Manager) error {
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.mu.Lock()
		p.queue = queue
		p.mu.Unlock()
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(start).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](failureMin, failureMax),
		}).
		Complete(p)
}

// Trigger requests a pass because of a new pod with this UID, the pods of a
// node that is removed, or new capacity in a pool. It does not block, and may
// be called before the controller runs.
func (p *Provisioner) Trigger(uid string) {
	if !p.batch.add(uid, p.Clock.Now()) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue != nil {
		p.queue.AddAfter(reconcile.Request{}, min(p.batch.window.Idle, p.batch.window.Most))
	}
}

// Reconcile makes a pass if one is due, and returns when the next one is.
func (p *Provisioner) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !p.Ready() {
		return reconcile.Result{RequeueAfter: notReadyPoll}, nil
	}
	if wait, idle := p.wait(); idle || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	p.batch.clear()
	pending, err := p.pass(ctx)
	p.retry = time.Time{}
	if err != nil {
		p.retry = p.Clock.Now()
		return reconcile.Result{}, err
	}
	if pending {
		p.retry = p.Clock.Now().Add(RetryAfter)
	}
	wait, idle := p.wait()
	if !idle && wait <= 0 {
		wait = time.Nanosecond // triggered meanwhile, and the window has ended
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// wait returns the time until the next pass, and whether the next pass needs a
// trigger.
func (p *Provisioner) wait() (wait time.Duration, idle bool) {
	at, triggered := p.batch.end()
	if !triggered || !p.retry.IsZero() && p.retry.Before(at) {
		at = p.retry
	}
	if at.IsZero() {
		return 0, true
	}
	return at.Sub(p.Clock.Now()), false
}

// pools returns the NodePools by name.
func (p *Provisioner) pools(ctx context.Context) (map[string]*v1.NodePool, error) {
	list := &v1.NodePoolList{}
	if err := p.Client.List(ctx, list); err != nil {
		return nil, err
	}
	out := make(map[string]*v1.NodePool, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}
