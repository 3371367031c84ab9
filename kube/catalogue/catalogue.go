// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// Sink receives the instance types that can be launched for a NodePool.
type Sink interface {
	SetTypes(pool string, types []*model.InstanceType, extras ...model.Extra)
	// SetFeatures says which features kubelets of new nodes of the NodePool will
	// declare and which not; one that is not named is not known.
	SetFeatures(pool string, features map[string]bool)
}

// Period is the time between two periodic refreshes.
const Period = 30 * time.Second

// Catalogue asks the provider for instance types: before a plan that launches
// some, on request, and otherwise every Period, so that prices of nodes are
// known even if nothing is launched. The fields are required and do not change
// once it is in use.
type Catalogue struct {
	Reader   client.Reader // of NodePools
	Provider cloud.Provider
	Axis     *model.Axis
	World    Sink
	// Extras returns what nodes of a NodePool cost besides their instances. The
	// prices in the World include it. Nil means no extras.
	Extras func(context.Context, *v1.NodePool) ([]model.Extra, error)
	// Features returns which features the kubelets of new nodes of a NodePool will
	// declare and which not. Nil means that nothing is known.
	Features func(context.Context, *v1.NodePool) (map[string]bool, error)
	// Failed is called for each NodePool whose instance types, and so the
	// prices of its nodes, cannot be read. It must not block; nil means no
	// call.
	Failed func(pool string)

	asked     atomic.Int64 // refreshes that have begun
	mu        sync.Mutex
	taken     int64 // the latest of them that the World has received
	converted map[source]*model.InstanceType
}

// source is what a type is converted from.
type source struct {
	*cloud.InstanceType
	extras string // what is added to its prices, as text
}

// answer is what can be launched for a NodePool.
type answer struct {
	pool   string
	types  []*cloud.InstanceType
	extras []model.Extra
	// features of kubelets
	features map[string]bool
}

// Register adds the controller catalogue to the manager.
func (c *Catalogue) Register(mgr manager.Manager) error {
	start := ctrlsource.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("catalogue").
		WatchesRawSource(start).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(c)
}

// Reconcile refreshes, and comes back to do so again.
func (c *Catalogue) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{RequeueAfter: Period}, c.Refresh(ctx)
}

// Refresh updates the World with the provider's current instance types. Call it
// before every Snapshot: a provider answers from memory, and each type is
// converted once. If the types of a pool cannot be read, Refresh logs that and
// leaves the pool without types: the pool launches nothing, and other pools are
// not affected.
func (c *Catalogue) Refresh(ctx context.Context) error {
	order := c.asked.Add(1)
	pools := &v1.NodePoolList{}
	if err := c.Reader.List(ctx, pools); err != nil {
		return fmt.Errorf("list node pools: %w", err)
	}
	var answers []answer
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !cloud.Manages(c.Provider, pool.Spec.Template.Spec.NodeClassRef) {
			continue
		}
		a, err := c.ask(ctx, pool)
		if err != nil {
			return err
		}
		answers = append(answers, a)
	}
	c.tell(order, answers)
	return nil
}

// ask returns the types of the pool and what comes with its nodes. It returns
// no types if they cannot be read. A class or an overlay that is not ready is
// not an error here, because its own status reports it.
func (c *Catalogue) ask(ctx context.Context, pool *v1.NodePool) (answer, error) {
	out := answer{pool: pool.Name}
	types, err := c.Provider.InstanceTypes(ctx, pool)
	if err == nil && c.Extras != nil {
		out.extras, err = c.Extras(ctx, pool)
	}
	if err == nil && c.Features != nil {
		out.features, err = c.Features(ctx, pool)
	}
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("instance types of node pool %s: %w", pool.Name, ctx.Err())
	case cloud.IsUnevaluatedNodePool(err), cloud.IsNodeClassNotReady(err):
		log.FromContext(ctx).V(1).Info("leaving out a node pool for now", "NodePool", pool.Name, "reason", err.Error())
		return out, nil
	case err != nil:
		log.FromContext(ctx).Error(err, "leaving out a node pool whose instance types are unknown", "NodePool", pool.Name)
		if c.Failed != nil {
			c.Failed(pool.Name)
		}
		return out, nil
	}
	out.types = types
	return out, nil
}

// tell passes the types of the pools to the World, unless a refresh that began
// later has done so.
func (c *Catalogue) tell(order int64, answers []answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if order < c.taken {
		return
	}
	c.taken = order
	seen := make(map[source]*model.InstanceType, len(c.converted))
	for _, a := range answers {
		c.World.SetTypes(a.pool, c.convert(a, seen), a.extras...)
		c.World.SetFeatures(a.pool, a.features)
	}
	c.converted = seen
}

// convert returns the types as decisions see them, with the extras in their
// prices. Those converted before are taken from there; all end up in seen.
func (c *Catalogue) convert(a answer, seen map[source]*model.InstanceType) []*model.InstanceType {
	out := make([]*model.InstanceType, 0, len(a.types))
	extras := ""
	if len(a.extras) > 0 {
		extras = fmt.Sprint(a.extras)
	}
	for _, t := range a.types {
		from := source{t, extras}
		m := seen[from]
		if m == nil {
			m = c.converted[from]
		}
		if m == nil {
			m = cloud.Types(c.Axis, []*cloud.InstanceType{t})[0].With(a.extras)
		}
		seen[from] = m
		out = append(out, m)
	}
	return out
}
