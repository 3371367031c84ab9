// SPDX-License-Identifier: Apache-2.0

// Package garbage removes what missed events have left behind: it deletes
// claims whose instance is gone, and terminates instances whose claim is gone.
//
// Invariants:
//
//  1. Nothing is deleted because of an incomplete answer: if any list fails, the round ends.
//  2. A claim whose Node is ready is always kept, because its kubelet is alive. Any other
//     claim is deleted only if the provider, asked for this instance, reports that it does not
//     exist, because a list can lag. For an instance that was launched a short time ago, such an
//     answer does not count, because the cloud may not know it yet.
//  3. An instance is terminated only when it has been without a claim for the grace
//     time, and the API server itself, not a cache, says the claim is gone. Its
//     Node is deleted with it.
package garbage

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"golang.org/x/sync/errgroup"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/join"
	"karpenter/kube/meter"
)

const (
	// period is the time between two rounds, but for early ones.
	period = 2 * time.Minute
	// earlyPeriod is that after the first rounds, see EarlyRounds.
	earlyPeriod = 10 * time.Second
	// parallel is how many claims or instances are dealt with at once.
	parallel = 20
	// settles is how long after its launch an instance may not show in the
	// cloud's answers.
	settles = 2 * time.Minute
	// DefaultGrace is how long an instance may be without a claim.
	DefaultGrace = 30 * time.Second
)

// Reconciler is the controller nodeclaim.garbagecollection. All fields are
// required unless they say otherwise; Client serves the indexes of package
// join.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, past any cache.
	Live        client.Reader
	Provider    cloud.Provider
	Clock       clock.PassiveClock
	Disruptions *meter.Disruptions
	// Grace is how long after its start an instance without a claim is left
	// alone. Zero means DefaultGrace.
	Grace time.Duration
	// EarlyRounds is the number of successful rounds at the start that follow
	// each other quickly, because instances that the previous process has left
	// behind are expensive.
	EarlyRounds int

	rounds  int                  // without a failure, as far as they count
	ageless map[string]time.Time // when instances of unknown age were first seen, by provider ID
}

// Register adds the controller to the manager. It runs one round at a time,
// regardless of the options.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	options.MaxConcurrentReconciles = 1
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.garbagecollection").
		WatchesRawSource(start).
		WithOptions(options).
		Complete(r)
}

// Reconcile runs one round and comes back for the next.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// The claims are read before and after the instances: a claim that was
	// there before must show its instance, and an instance must show its claim
	// afterwards.
	before, err := r.claims(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	machines, err := r.Provider.List(ctx)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list instances: %w", err)
	}
	after, err := r.claims(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = errors.Join(
		each(ctx, lost(before, machines, r.Clock.Now().Add(-settles)), r.collectClaim),
		each(ctx, r.orphans(machines, after), r.collectMachine),
	)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.rounds < r.EarlyRounds {
		r.rounds++
		return reconcile.Result{RequeueAfter: earlyPeriod}, nil
	}
	return reconcile.Result{RequeueAfter: period}, nil
}

// claims returns the claims of the provider.
func (r *Reconciler) claims(ctx context.Context) ([]v1.NodeClaim, error) {
	list := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list node claims: %w", err)
	}
	var managed []v1.NodeClaim
	for _, c := range list.Items {
		if cloud.Manages(r.Provider, c.Spec.NodeClassRef) {
			managed = append(managed, c)
		}
	}
	return managed, nil
}

// lost returns the registered claims that were launched until then and whose
// machine is not among the living. Those that never registered are left to their
// timeout.
func lost(claims []v1.NodeClaim, machines []*cloud.Machine, until time.Time) []*v1.NodeClaim {
	living := map[string]bool{}
	for _, m := range machines {
		living[m.ProviderID] = living[m.ProviderID] || !m.Deleting
	}
	var out []*v1.NodeClaim
	for i := range claims {
		c := &claims[i]
		if launched := conditions.Get(c, v1.LaunchedCondition); conditions.IsTrue(c, v1.LaunchedCondition) && launched.LastTransitionTime.After(until) {
			continue
		}
		if c.DeletionTimestamp.IsZero() && conditions.IsTrue(c, v1.RegisteredCondition) && !living[c.Status.ProviderID] {
			out = append(out, c)
		}
	}
	return out
}

// orphans returns the instances without a claim that had time to get one. One
// that the cloud does not know the start of began when it was first seen.
func (r *Reconciler) orphans(machines []*cloud.Machine, claims []v1.NodeClaim) []*cloud.Machine {
	grace := r.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	now := r.Clock.Now()
	seen := map[string]time.Time{}
	aged := make([]*cloud.Machine, len(machines))
	for i, m := range machines {
		if aged[i] = m; !m.Created.IsZero() {
			continue
		}
		first, known := r.ageless[m.ProviderID]
		if !known {
			first = now
		}
		seen[m.ProviderID] = first
		dated := *m
		dated.Created = first
		aged[i] = &dated
	}
	r.ageless = seen
	return cloud.Orphans(aged, claims, now.Add(-grace))
}

// collectClaim deletes a claim without an instance, unless its Node or the
// instance itself is alive.
func (r *Reconciler) collectClaim(ctx context.Context, claim *v1.NodeClaim) error {
	node, err := join.NodeOf(ctx, r.Client, claim)
	switch {
	case err == nil && isReady(node):
		return nil
	case err != nil && !errors.Is(err, join.ErrNotFound) && !errors.Is(err, join.ErrDuplicate):
		return err
	}
	machine, err := r.Provider.Get(ctx, claim.Status.ProviderID)
	switch {
	case err == nil && !machine.Deleting:
		return nil
	case err != nil && !cloud.IsNotFound(err):
		return fmt.Errorf("get instance of node claim %s: %w", claim.Name, err)
	}
	uid := claim.UID
	if err := r.Client.Delete(ctx, claim.DeepCopy(), client.Preconditions{UID: &uid}); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("deleted node claim whose instance is gone", "NodeClaim", claim.Name, "provider-id", claim.Status.ProviderID)
	r.Disruptions.Forced(ctx, claim, "garbage_collected")
	return nil
}

// collectMachine terminates an instance whose claim the API server does not
// know. It deletes the Node first, because the Node cannot be found from an
// instance that is terminating.
func (r *Reconciler) collectMachine(ctx context.Context, machine *cloud.Machine) error {
	gone, err := r.isGone(ctx, machine)
	if err != nil || !gone {
		return err
	}
	remnant := machine.Remnant()
	nodes, err := join.NodesOf(ctx, r.Client, remnant)
	if err != nil {
		return err
	}
	for i := range nodes {
		uid := nodes[i].UID
		if err := r.Client.Delete(ctx, &nodes[i], client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete node %s, which has no node claim: %w", nodes[i].Name, err)
		}
	}
	if err := r.Provider.Delete(ctx, remnant); err != nil && !cloud.IsNotFound(err) {
		return fmt.Errorf("terminate instance %s without a node claim: %w", machine.ProviderID, err)
	}
	log.FromContext(ctx).Info("terminated instance without a node claim", "NodeClaim", machine.Claim, "provider-id", machine.ProviderID)
	return nil
}

// isGone reports whether the instance still has no claim.
func (r *Reconciler) isGone(ctx context.Context, machine *cloud.Machine) (bool, error) {
	if machine.Claim == "" {
		return true, nil
	}
	claim := &v1.NodeClaim{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: machine.Claim}, claim)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read node claim %s of instance %s: %w", machine.Claim, machine.ProviderID, err)
	}
	return claim.UID != machine.ClaimUID && claim.Status.ProviderID != machine.ProviderID, nil
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// each runs f on all items, some at a time, and joins the errors.
func each[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	failures := make([]error, len(items))
	var running errgroup.Group
	running.SetLimit(parallel)
	for i, item := range items {
		running.Go(func() error {
			failures[i] = f(ctx, item)
			return nil
		})
	}
	_ = running.Wait()
	return errors.Join(failures...)
}
