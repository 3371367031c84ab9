// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/kube/meter"
	"karpenter/model"
)

const (
	// DefaultPeriod is the time between two plans when nothing happens.
	DefaultPeriod = 10 * time.Second
	// DefaultDelay is how long an intent has to be confirmed before it is
	// carried out.
	DefaultDelay = 15 * time.Second

	notReadyPoll = time.Second            // until the world is complete
	busyPoll     = time.Second            // while commands are under way
	againPoll    = 100 * time.Millisecond // after something has changed, or a write met another
	failureMin   = time.Second            // after a pass that failed; doubled each time
	failureMax   = 10 * time.Second
)

// World is the part of the cluster's state that disruption needs.
type World interface {
	// Snapshot returns the cluster as it is now.
	Snapshot(now time.Time) *model.Snapshot
	// MarkForDeletion makes Snapshots treat the nodes of the claims as
	// deleting; Unmark takes that back.
	MarkForDeletion(claims ...string)
	Unmark(claims ...string)
}

// Placer launches replacements and plans the pods of commands. It is safe for
// concurrent use.
type Placer interface {
	// Replace creates a NodeClaim for each launch from the given pools, and
	// plans the pods of the launch on it. It creates all claims within the
	// limits of their pools, or none, and returns their names. If it returns an
	// error, the names are those of claims that were created nevertheless, on
	// which no pod is planned.
	Replace(ctx context.Context, reason model.Reason, launches []model.Launch, pools map[string]*v1.NodePool) ([]string, error)
	// Move plans pods on nodes of the Snapshot and keeps these nodes from being
	// disrupted for a while.
	Move(s *model.Snapshot, placements []model.Placement)
}

// Catalogue updates the World with the instance types that can be launched now,
// and their prices.
type Catalogue interface {
	Refresh(ctx context.Context) error
}

// Loop is the controller disruption. It must run one pass at a time. The
// exported fields are required unless they say otherwise, and do not change
// once it runs.
type Loop struct {
	Client    client.Client
	World     World
	Placer    Placer
	Catalogue Catalogue
	// Decide makes the Plan whose Commands are carried out.
	Decide func(*model.Snapshot) *model.Plan
	// Ready reports whether the World has received every object that existed
	// when the process started. Until then, nodes may look emptier than they
	// are, and the loop does nothing.
	Ready       func() bool
	Events      events.Recorder
	Clock       clock.PassiveClock
	Metrics     *Metrics
	Disruptions *meter.Disruptions
	// Period and Delay are DefaultPeriod and DefaultDelay when zero. If planning takes
	// long, the time between two plans is up to three Periods. While
	// commands are under way there is a pass every second, but a plan is made only
	// when the Period has passed, an intent is due, or a command has ended or
	// budgets leave more than before; for the latter two not sooner than ten times
	// as long after the last plan as that one took.
	Period, Delay time.Duration
	// Parallel is how many commands, and of each how many nodes, are worked on at
	// once; 0 = many.
	Parallel int
	// Repairs has unhealthy nodes repaired; nil = they are not.
	Repairs *Repairs
	// Started is called for each command that was started, with the Snapshot of
	// its plan and the names of the NodeClaims that were created for it. It
	// must not block or modify anything; nil means no call.
	Started func(s *model.Snapshot, c *model.Command, claims []string)
	// NewID names commands in the log; nil means random UUIDs.
	NewID func() string

	cadence    cadence
	intents    intents
	executions []*execution          // oldest first
	executing  map[string]*execution // by claim of their nodes
	leftovers  map[string]bool       // claims made for commands that failed
	pauses     pauses
	budgets    budgetMemory
	rejected   map[string]bool // claims of nodes that Balanced kept in the last plan
	began      time.Time       // of the last pass
}

// Register adds the controller to the manager.
func (l *Loop) Register(mgr manager.Manager) error {
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("disruption").
		WatchesRawSource(start).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](failureMin, failureMax),
		}).
		Complete(l)
}

// scope is what one pass works on.
type scope struct {
	now      time.Time
	snapshot *model.Snapshot
	plan     *model.Plan
	managed  map[string]*model.Node   // of the snapshot, by claim
	pools    map[string]*v1.NodePool  // by name
	claims   map[string]*v1.NodeClaim // by name, the cache's own: not to be modified
	nodes    map[string]*corev1.Node  // the same by provider ID; two of the same ID are none
	ill      map[string]*illness      // to be repaired, by claim
}

// nodeOf returns the Node of the claim, or nil.
func (s *scope) nodeOf(claim *v1.NodeClaim) *corev1.Node {
	if claim.Status.ProviderID == "" {
		return nil
	}
	return s.nodes[claim.Status.ProviderID]
}

// Reconcile makes one pass.
func (l *Loop) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !l.Ready() {
		return reconcile.Result{RequeueAfter: notReadyPoll}, nil
	}
	l.reportPause(ctx)
	s, err := l.open(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	l.reportBudgets(ctx, s)
	if err := errors.Join(l.discard(ctx, s), l.recover(ctx, s)); err != nil {
		return again(err)
	}
	ended := l.advance(ctx, s, l.executions)
	l.cadence.notice(s.snapshot.Pools, ended)
	if !l.toDecide(s) {
		return reconcile.Result{RequeueAfter: l.poll()}, nil
	}
	l.diagnose(ctx, s)
	l.decide(s)
	l.reportStays(s)
	l.countRejected(s)
	started, err := l.start(ctx, s, l.confirm(s))
	immediate := slices.DeleteFunc(started, func(x *execution) bool { return len(x.replacements) > 0 })
	over := l.advance(ctx, s, immediate)
	l.cadence.stirred = over || err != nil
	switch {
	case err != nil:
		return again(err)
	case l.underWay():
		return reconcile.Result{RequeueAfter: l.poll()}, nil
	case ended || over:
		return reconcile.Result{RequeueAfter: againPoll}, nil
	}
	return reconcile.Result{RequeueAfter: l.intents.wait(s.now, l.cadence.pause(orDefault(l.Period, DefaultPeriod)))}, nil
}

// underWay reports whether there is work between two plans.
func (l *Loop) underWay() bool { return len(l.executions)+len(l.leftovers) > 0 }

// poll is the time until what is under way is looked at again.
func (l *Loop) poll() time.Duration {
	if len(l.leftovers) > 0 {
		return againPoll
	}
	return busyPoll
}

// toDecide reports whether this pass makes a plan. A pass without other work
// always does.
func (l *Loop) toDecide(s *scope) bool {
	return !l.underWay() || l.cadence.due(s.now, l.intents, orDefault(l.Period, DefaultPeriod))
}

// again turns a conflict, which a fresh read resolves, into another pass.
func again(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: againPoll}, nil
	}
	return reconcile.Result{}, err
}

func orDefault(d, preset time.Duration) time.Duration {
	if d == 0 {
		return preset
	}
	return d
}

// open reads what the pass works on. It reads the pools first, because a
// replacement must not be made from a newer version of a pool than it was
// planned with.
func (l *Loop) open(ctx context.Context) (*scope, error) {
	pools, claims, nodes := &v1.NodePoolList{}, &v1.NodeClaimList{}, &corev1.NodeList{}
	err := errors.Join(l.Client.List(ctx, pools), l.Client.List(ctx, claims, client.UnsafeDisableDeepCopy), l.Client.List(ctx, nodes, client.UnsafeDisableDeepCopy))
	if err != nil {
		return nil, fmt.Errorf("list for disruption: %w", err)
	}
	s := &scope{
		now: l.Clock.Now(), managed: map[string]*model.Node{},
		pools: map[string]*v1.NodePool{}, claims: map[string]*v1.NodeClaim{}, nodes: map[string]*corev1.Node{},
	}
	if err := l.Catalogue.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("refresh instance types: %w", err)
	}
	s.snapshot = l.World.Snapshot(s.now)
	for i := range s.snapshot.Nodes {
		if n := &s.snapshot.Nodes[i]; n.Claim != "" {
			s.managed[n.Claim] = n
		}
	}
	for i := range pools.Items {
		s.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	for i := range claims.Items {
		s.claims[claims.Items[i].Name] = &claims.Items[i]
	}
	for i := range nodes.Items {
		id := nodes.Items[i].Spec.ProviderID
		if _, twice := s.nodes[id]; twice {
			s.nodes[id] = nil
			continue
		}
		s.nodes[id] = &nodes.Items[i]
	}
	return s, nil
}

// decide makes the plan, which takes the intents into account, and measures how
// long that takes.
func (l *Loop) decide(s *scope) {
	intended := *s.snapshot
	intended.Intents = l.intents.model()
	intended.Nodes = l.pauses.keep(s)
	started := l.Clock.Now()
	s.plan = l.Decide(&intended)
	took := l.Clock.Since(started)
	l.cadence.planned(s.now, took)
	l.Metrics.decided(s.plan, took)
}

// confirm updates the intents from the plan, and returns the commands to carry
// out now.
func (l *Loop) confirm(s *scope) []model.Command {
	c := l.intents.confirm(s.plan.Commands, s.now, orDefault(l.Delay, DefaultDelay))
	l.intents = c.next
	for i := range c.found {
		l.reportFound(s, &c.found[i])
	}
	for i := range c.dropped {
		l.reportDropped(s, &c.dropped[i])
	}
	return c.due
}
