package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
	"karpenter/kube/join"
	"karpenter/kube/meter"
)

const (
	// blockedRetry is how long after a refusal of the breaker the Node is
	// looked at again.
	blockedRetry = 5 * time.Minute
	// conflictRetry is how long after a conflict the Node is looked at again.
	conflictRetry = 100 * time.Millisecond
)

// Reconciler is the controller node.health. All fields are required; Client
// serves the indexes of package join.
type Reconciler struct {
	Client      client.Client
	Provider    cloud.Provider
	Clock       clock.PassiveClock
	Recorder    events.Recorder
	Metrics     *meter.Unhealthy
	Disruptions *meter.Disruptions
}

// Register adds the controller to the manager, unless the provider knows no
// condition to repair.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	if len(r.Provider.RepairPolicies()) == 0 {
		return nil
	}
	return builder.ControllerManagedBy(mgr).
		Named("node.health").
		For(&corev1.Node{}, builder.WithPredicates(r.news())).
		WithOptions(options).
		Complete(r)
}

// Reconcile looks at the health of one Node, and replaces its machine when it
// has been bad for too long.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !cloud.ManagesNode(r.Provider, node) {
		return reconcile.Result{}, nil
	}
	found, sick := diagnose(node, r.Provider.RepairPolicies())
	if !sick {
		return reconcile.Result{}, nil
	}
	claim, err := join.ClaimOf(ctx, r.Client, node)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if left := found.due.Sub(r.Clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	open, err := r.breaker(ctx, node, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	if open {
		return reconcile.Result{RequeueAfter: blockedRetry}, nil
	}
	err = r.replace(ctx, node, claim.DeepCopy(), found)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// replace deletes the claim and has its Node drained by force. Both steps may
// be repeated, and a crash between them leaves the second to the next look at
// the Node.
func (r *Reconciler) replace(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim, found diagnosis) error {
	if claim.DeletionTimestamp.IsZero() {
		uid, version := claim.UID, claim.ResourceVersion
		// Over what was read only, so that no claim is counted twice.
		if err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
			return err
		}
		log.FromContext(ctx).Info("deleted node claim of unhealthy node", "NodeClaim", claim.Name,
			"condition", found.condition.Type, "status", found.condition.Status, "since", found.condition.LastTransitionTime)
		r.Recorder.Publish(repairing(node, found), repairing(claim, found))
		r.Disruptions.Forced(ctx, claim, "unhealthy")
		r.Metrics.Count(claim, found.condition.Type, meter.TerminationMode(claim))
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
	}
	return r.hurry(ctx, claim)
}

// hurry sets the deadline of the drain to now, unless it has passed.
func (r *Reconciler) hurry(ctx context.Context, claim *v1.NodeClaim) error {
	now := r.Clock.Now()
	deadline, err := time.Parse(time.RFC3339, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	if err == nil && !deadline.After(now) {
		return nil
	}
	stored := claim.DeepCopy()
	claim.Annotations = maps.Clone(claim.Annotations)
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey] = now.UTC().Format(time.RFC3339)
	err = r.Client.Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set deadline of node claim %s: %w", claim.Name, err)
	}
	return err
}
