// SPDX-License-Identifier: Apache-2.0

package static

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
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
	"karpenter/kube/convert"
	"karpenter/kube/join"
	"karpenter/kube/pods"
	"karpenter/model"
)

// Counter counts the claims of a pool by state.
type Counter interface {
	Static(pool string) model.Static
}

// Deprovisioning is the controller static.deprovisioning. All fields are
// required.
type Deprovisioning struct {
	Client  client.Client // serves Pods by node name
	Live    client.Reader // reads from the API server, not from a cache
	World   Counter
	Convert convert.Converter
	Clock   clock.PassiveClock
}

// Register adds the controller to the manager.
func (r *Deprovisioning) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("static.deprovisioning").
		For(&v1.NodePool{}, builder.WithPredicates(rescaled(func(_, _ *v1.NodePool) bool { return false }))).
		Watches(&v1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(appearing())).
		WithOptions(options).
		Complete(r)
}

// Reconcile deletes the surplus claims of the pool.
func (r *Deprovisioning) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool, err := r.read(ctx, r.Client, request.Name)
	if err != nil || pool == nil {
		return reconcile.Result{}, err
	}
	if r.World.Static(pool.Name).Active <= replicasOf(pool) {
		return reconcile.Result{RequeueAfter: refreshAfter}, nil
	}
	if pool, err = r.read(ctx, r.Live, request.Name); err != nil || pool == nil {
		return reconcile.Result{}, err
	}
	claims, err := claimsOf(ctx, r.Live, pool.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	active := map[string]*v1.NodeClaim{}
	for i := range claims {
		if isActive(&claims[i]) {
			active[claims[i].Name] = &claims[i]
		}
	}
	excess := len(active) - replicasOf(pool)
	if excess <= 0 {
		return reconcile.Result{RequeueAfter: refreshAfter}, nil
	}
	var all []victim
	for _, claim := range active {
		all = append(all, r.describe(ctx, claim))
	}
	if err := r.delete(ctx, active, victims(all, excess)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: refreshAfter}, nil
}

func (r *Deprovisioning) read(ctx context.Context, from client.Reader, name string) (*v1.NodePool, error) {
	return read(ctx, from, name, func(p *v1.NodePool) bool { return r.Convert.Manages(p.Spec.Template.Spec.NodeClassRef) })
}

// isActive reports whether the claim is not being removed, as far as the API
// shows.
func isActive(claim *v1.NodeClaim) bool {
	return claim.DeletionTimestamp.IsZero() && !conditions.IsTrue(claim, v1.InstanceTerminatingCondition) &&
		!conditions.IsTrue(claim, v1.DisruptionReasonCondition)
}

// describe returns what the removal of the claim would disrupt. If pods cannot
// be listed, the claim counts as having a pod that must not be disrupted.
func (r *Deprovisioning) describe(ctx context.Context, claim *v1.NodeClaim) victim {
	now := r.Clock.Now()
	v := victim{
		claim: claim.Name, launched: claim.Status.ProviderID != "",
		ready: conditions.IsTrue(claim, v1.InitializedCondition), drifted: conditions.IsTrue(claim, v1.DriftedCondition),
		left: lifetimeLeft(claim, now),
	}
	node, err := join.NodeOf(ctx, r.Client, claim)
	if errors.Is(err, join.ErrNotFound) {
		return v
	}
	if err != nil {
		v.pods, v.guarded = 1, true
		return v
	}
	v.spared = node.Annotations[v1.DoNotDisruptAnnotationKey] == "true"
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{join.PodNodeName: node.Name}); err != nil {
		v.pods, v.guarded = 1, true
		return v
	}
	for i := range list.Items {
		p := &list.Items[i]
		if pods.Terminal(p) {
			continue
		}
		v.guarded = v.guarded || !pods.Disruptable(p, now)
		if !pods.DaemonSet(p) && !pods.Static(p) {
			v.pods++
		}
		v.cost += convert.EvictionCost(p, r.Convert.DeletionCosts)
	}
	if v.cost *= v.left; v.pods == 0 {
		v.cost = 0 // DaemonSets' pods go with any node
	}
	return v
}

// lifetimeLeft returns how much of its life the claim has before it, from 1 to 0.
func lifetimeLeft(claim *v1.NodeClaim, now time.Time) float64 {
	limit := claim.Spec.ExpireAfter.Duration
	if limit == nil || *limit <= 0 {
		return 1
	}
	left := claim.CreationTimestamp.Add(*limit).Sub(now)
	return min(max(float64(left)/float64(*limit), 0), 1)
}

// delete deletes the claims, all at once.
func (r *Deprovisioning) delete(ctx context.Context, claims map[string]*v1.NodeClaim, names []string) error {
	failures := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() error {
			claim := claims[name]
			uid := claim.UID
			if err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
				failures[i] = fmt.Errorf("delete node claim %s: %w", name, err)
				return nil
			}
			log.FromContext(ctx).Info("deleted node claim that its node pool does not need", "NodeClaim", klog.KRef("", name))
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	return errors.Join(failures...)
}
