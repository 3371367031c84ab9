// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
	"karpenter/kube/join"
)

const (
	drainPoll     = time.Second      // between passes of a drain or a wait for volumes, at first
	drainPollMost = 10 * time.Second // and when it has taken long
	drainAtLeast  = 5 * time.Second  // for pods bound by a scheduler that had not seen the taint
	machinePoll   = 5 * time.Second  // between calls to end an instance
)

// Machines is the part of cloud.Provider that termination needs.
type Machines interface {
	NodeClasses() []schema.GroupVersionKind
	Get(ctx context.Context, providerID string) (*cloud.Machine, error)
	Delete(ctx context.Context, claim *v1.NodeClaim) error
}

// Evictions takes the pods whose turn it is to leave. Queue is one.
type Evictions interface {
	// Add takes the pods; adding a pod again can only make its deadline
	// earlier. Nil is no deadline.
	Add(deadline *time.Time, pods ...*corev1.Pod)
}

// Reconciler removes deleted Nodes from the cluster. All fields are required.
type Reconciler struct {
	Client    client.Client
	Live      client.Reader // the API server itself; serves Pods by node name
	Machines  Machines
	Evictions Evictions
	Events    events.Recorder
	Clock     clock.PassiveClock
	Metrics   *Metrics
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, workers int) error {
	managed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.ManagesNode(r.Machines, o.(*corev1.Node))
	})
	return builder.ControllerManagedBy(mgr).
		Named("node.termination").
		For(&corev1.Node{}, builder.WithPredicates(managed)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             limiter[reconcile.Request](workers, 10),
		}).
		Complete(r)
}

// scope is what one pass works on.
type scope struct {
	node     *corev1.Node
	claim    *v1.NodeClaim // nil when the node has none, or more than one
	stored   *v1.NodeClaim // claim as it was read
	deadline *time.Time    // nil = none
	unknown  bool          // there is a deadline, but it cannot be read
	pods     []*corev1.Pod // all pods on the node
	now      time.Time
}

// phase does one part of the termination. It returns how long to wait before
// the next pass, 0 when the part is done.
type phase func(context.Context, *scope) (time.Duration, error)

// Reconcile makes one pass over a Node.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, req.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if node.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(node, v1.TerminationFinalizer) || !cloud.ManagesNode(r.Machines, node) {
		return reconcile.Result{}, nil
	}
	s := &scope{node: node.DeepCopy(), now: r.Clock.Now()}
	if err := r.findClaim(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	gone, err := r.machineGone(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	if gone {
		return reconcile.Result{}, r.release(ctx, s)
	}
	unreadable := r.readDeadline(s)
	wait, err := run(ctx, s, r.keepPodsAway, r.drain, r.requireDeadline, r.detachVolumes, r.endMachine)
	changed := apierrors.IsConflict(err)
	if changed {
		err = nil
	}
	saved, saveErr := r.save(ctx, s)
	if err := errors.Join(unreadable, err, saveErr); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case changed || !saved:
		return reconcile.Result{Requeue: true}, nil
	case wait > 0:
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, r.release(ctx, s)
}

// run runs the phases until one has to wait or fails.
func run(ctx context.Context, s *scope, phases ...phase) (time.Duration, error) {
	for _, p := range phases {
		if wait, err := p(ctx, s); wait > 0 || err != nil {
			return wait, err
		}
	}
	return 0, nil
}

// findClaim fills in the claim, and deletes it if it is not being deleted.
func (r *Reconciler) findClaim(ctx context.Context, s *scope) error {
	claim, err := join.ClaimOf(ctx, r.Client, s.node)
	if errors.Is(err, join.ErrNotFound) {
		return nil
	}
	if errors.Is(err, join.ErrDuplicate) {
		return r.findDeadline(ctx, s)
	}
	if err != nil {
		return err
	}
	if claim.DeletionTimestamp == nil {
		if err := r.Client.Delete(ctx, claim.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete node claim %s: %w", claim.Name, err)
		}
		// The deletion changed the claim, and status is written under lock.
		fresh := &v1.NodeClaim{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), fresh); err == nil {
			claim = fresh
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	s.claim, s.stored = claim.DeepCopy(), claim.DeepCopy()
	return nil
}

// findDeadline fills in the deadline of a Node whose NodeClaim is ambiguous,
// because several Nodes or NodeClaims have the provider ID. It uses the
// deadline of a NodeClaim that is being deleted anyway. The instance is left
// alone.
func (r *Reconciler) findDeadline(ctx context.Context, s *scope) error {
	claims, err := join.ClaimsOf(ctx, r.Client, s.node)
	if err != nil {
		return err
	}
	for i := range claims {
		text := claims[i].Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]
		if deadline, err := time.Parse(time.RFC3339, text); err == nil && claims[i].DeletionTimestamp != nil {
			s.deadline = &deadline
		}
	}
	return nil
}

// machineGone reports whether the instance has terminated on its own. If the
// kubelet reports ready, it has not.
func (r *Reconciler) machineGone(ctx context.Context, s *scope) (bool, error) {
	for _, c := range s.node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return false, nil
		}
	}
	if s.node.Spec.ProviderID == "" {
		return false, nil
	}
	_, err := r.Machines.Get(ctx, s.node.Spec.ProviderID)
	if cloud.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get instance %s: %w", s.node.Spec.ProviderID, err)
	}
	return false, nil
}

// readDeadline fills in the deadline. One that cannot be read is reported to
// the user and returned as an error; the drain goes on without it.
func (r *Reconciler) readDeadline(s *scope) error {
	if s.claim == nil {
		return nil
	}
	text, ok := s.claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]
	if !ok {
		return nil
	}
	deadline, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.unknown = true
		r.Events.Publish(deadlineUnreadable(s.node, text), deadlineUnreadable(s.claim, text))
		return fmt.Errorf("deadline of node claim %s: %w", s.claim.Name, err)
	}
	s.deadline = &deadline
	r.Events.Publish(deadlineSeen(s.node, deadline))
	return nil
}

// save writes the claim's status if it changed. It reports false when the
// claim has changed since it was read, so that the pass must be repeated.
func (r *Reconciler) save(ctx context.Context, s *scope) (bool, error) {
	if s.claim == nil || equality.Semantic.DeepEqual(s.claim.Status, s.stored.Status) {
		return true, nil
	}
	drained := conditions.IsTrue(s.claim, v1.DrainedCondition) && !conditions.IsTrue(s.stored, v1.DrainedCondition)
	err := r.Client.Status().Patch(ctx, s.claim, client.MergeFromWithOptions(s.stored, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("patch status of node claim %s: %w", s.claim.Name, err)
	}
	if drained {
		r.Metrics.nodesDrained.WithLabelValues(s.node.Labels[v1.NodePoolLabelKey]).Inc()
	}
	return true, nil
}

// release removes our finalizer, with which the Node object goes.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	stored := s.node.DeepCopy()
	controllerutil.RemoveFinalizer(s.node, v1.TerminationFinalizer)
	// Strategic, because it removes one finalizer and leaves others that were
	// added meanwhile alone.
	if err := r.Client.Patch(ctx, s.node, client.StrategicMergeFrom(stored)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("remove finalizer of node %s: %w", stored.Name, err)
	}
	pool, zone := stored.Labels[v1.NodePoolLabelKey], stored.Labels[corev1.LabelTopologyZone]
	r.Metrics.nodesTerminated.WithLabelValues(pool, zone).Inc()
	r.Metrics.terminationDuration.WithLabelValues(pool).Observe(s.now.Sub(stored.DeletionTimestamp.Time).Seconds())
	r.Metrics.lifetime.WithLabelValues(pool).Observe(s.now.Sub(stored.CreationTimestamp.Time).Seconds())
	log.FromContext(ctx).Info("deleted node")
	return nil
}
