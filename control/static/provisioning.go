// SPDX-License-Identifier: Apache-2.0

package static

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/confirm"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/world"
)

const (
	notReadyPoll = time.Second      // until the world is complete
	limitedPoll  = 30 * time.Second // while the limit is reached
	// mostAtOnce is how many claims of a pool are created before the pool is
	// read again, whatever number it asks for.
	mostAtOnce = 1000
	nextRound  = time.Second // until the claims after those
)

// World is the part of the cluster's state that scale-up needs.
type World interface {
	confirm.World // of claims that were Planned
	// Static returns the number of claims of a pool by state.
	Static(pool string) model.Static
	// Planned records that a claim exists. It does not change a claim that is
	// known.
	Planned(claim world.Claim, pods []model.Pod)
	// Refill grants nodes that the pool lacks, until release is called.
	Refill(pool string, replicas, limit int) (n int, release func())
}

// Provisioning is the controller static.provisioning. The exported fields are
// required unless they say otherwise.
type Provisioning struct {
	Client  client.Client
	Live    client.Reader // reads from the API server, not from a cache
	World   World
	Convert convert.Converter
	Clock   clock.PassiveClock
	// Ready reports whether the World has received every object that existed
	// when the process started. Nothing is created before.
	Ready func() bool
	// Created is called for each claim that was created, with the reason.
	Created func(claim *v1.NodeClaim, reason string)
	// Parallel is how many claims are created at once; 0 = many.
	Parallel int

	pace pace
}

// Register adds the controller to the manager.
func (r *Provisioning) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("static.provisioning").
		For(&v1.NodePool{}, builder.WithPredicates(rescaled(readied))).
		Watches(&v1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(leaving())).
		WithOptions(options).
		Complete(r)
}

// Reconcile creates the claims that the pool lacks.
func (r *Provisioning) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := r.read(ctx, r.Client, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pool == nil {
		r.pace.forget(request.Name)
		return reconcile.Result{}, nil
	}
	if !r.Ready() {
		return reconcile.Result{RequeueAfter: notReadyPoll}, nil
	}
	if err := confirm.Claims(ctx, r.Live, r.World, r.Convert, r.Clock.Now()); err != nil {
		return reconcile.Result{}, err
	}
	if r.complete(pool) {
		return reconcile.Result{RequeueAfter: refreshAfter}, nil
	}
	if pool, err = r.read(ctx, r.Live, request.Name); err != nil || pool == nil {
		return reconcile.Result{}, err
	}
	claims, err := r.look(ctx, pool.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.complete(pool) {
		return reconcile.Result{RequeueAfter: refreshAfter}, nil
	}
	if pause := r.pace.pause(pool.Name, claims, r.Clock.Now()); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	return r.refill(ctx, pool, claims)
}

// complete reports whether the pool has what it asks for, as far as the world
// knows.
func (r *Provisioning) complete(pool *v1.NodePool) bool {
	count := r.World.Static(pool.Name)
	return count.Active+count.Pending >= replicasOf(pool)
}

// refill creates the missing claims, up to mostAtOnce.
func (r *Provisioning) refill(ctx context.Context, pool *v1.NodePool, claims []v1.NodeClaim) (reconcile.Result, error) {
	count := r.World.Static(pool.Name)
	replicas := min(replicasOf(pool), count.Active+count.Pending+mostAtOnce)
	n, release := r.World.Refill(pool.Name, replicas, limitOf(pool))
	defer release()
	if n == 0 {
		log.FromContext(ctx).Info("limit of nodes reached", "replicas", replicasOf(pool), "limit", limitOf(pool))
		return reconcile.Result{RequeueAfter: limitedPoll}, nil
	}
	names, err := r.create(ctx, pool, n)
	r.pace.created(pool.Name, names, claims, r.Clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	if replicas < replicasOf(pool) {
		return reconcile.Result{RequeueAfter: nextRound}, nil
	}
	return reconcile.Result{RequeueAfter: refreshAfter}, nil
}

// read returns the pool if it is to be kept at its number of nodes.
func (r *Provisioning) read(ctx context.Context, from client.Reader, name string) (*v1.NodePool, error) {
	managed := func(p *v1.NodePool) bool { return r.Convert.Manages(p.Spec.Template.Spec.NodeClassRef) }
	pool, err := read(ctx, from, name, managed)
	if err != nil || pool == nil || !conditions.IsTrue(pool, v1.ReadyCondition) {
		return nil, err
	}
	return pool, nil
}

// look returns the claims of the pool, and passes claims to the world that it
// does not know yet.
func (r *Provisioning) look(ctx context.Context, pool string) ([]v1.NodeClaim, error) {
	claims, err := claimsOf(ctx, r.Live, pool)
	if err != nil {
		return nil, err
	}
	for i := range claims {
		if known, ok := r.Convert.Claim(&claims[i]); ok {
			r.World.Planned(known, nil)
		}
	}
	return claims, nil
}

// create creates n claims from the pool's template, all at once, and returns
// their names. One that fails does not keep the others from being created.
func (r *Provisioning) create(ctx context.Context, pool *v1.NodePool, n int) ([]string, error) {
	names, failures := make([]string, n), make([]error, n)
	var group errgroup.Group
	group.SetLimit(cmp.Or(r.Parallel, parallel))
	for i := range n {
		group.Go(func() error {
			names[i], failures[i] = r.createOne(ctx, pool)
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	return slices.DeleteFunc(names, func(name string) bool { return name == "" }), errors.Join(failures...)
}

func (r *Provisioning) createOne(ctx context.Context, pool *v1.NodePool) (name string, err error) {
	claim := r.Convert.NodeClaimFor(&model.Launch{Pool: pool.Name}, pool, nil)
	if err := r.Client.Create(ctx, claim); err != nil {
		return "", fmt.Errorf("create node claim for node pool %s: %w", pool.Name, err)
	}
	if known, ok := r.Convert.Claim(claim); ok {
		r.World.Planned(known, nil)
	}
	r.Created(claim, "provisioned")
	log.FromContext(ctx).Info("created node claim", "NodeClaim", klog.KRef("", claim.Name))
	return claim.Name, nil
}

func replicasOf(pool *v1.NodePool) int { return bounded(*pool.Spec.Replicas) }

func limitOf(pool *v1.NodePool) int {
	if limit, ok := pool.NodeLimit(); ok {
		return bounded(max(limit, 0))
	}
	return world.NoLimit
}

func bounded(n int64) int { return int(min(n, math.MaxInt32)) }
