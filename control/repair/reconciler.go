// SPDX-License-Identifier: Apache-2.0

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
	// blockedRetry is how long after a rejection of the breaker the Node is
	// looked at again.
	blockedRetry = 5 * time.Minute
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

// Reconcile looks at the health of one Node, and replaces its instance if it
// has been unhealthy for too long.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !cloud.ManagesNode(r.Provider, node) {
		return reconcile.Result{}, nil
	}
	claim, err := join.ClaimOf(ctx, r.Client, node)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	found, wait, err := r.judge(ctx, node, claim)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case found == nil:
		err = r.withdraw(ctx, claim)
	default:
		err = r.replace(ctx, node, claim.DeepCopy(), *found)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, client.IgnoreNotFound(err)
}

// judge returns the condition for which the Node is to be replaced now, or nil
// and when to look again; 0 = with the next change of the Node.
func (r *Reconciler) judge(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) (*diagnosis, time.Duration, error) {
	found, sick := diagnose(node, r.Provider.RepairPolicies())
	if !sick {
		return nil, 0, nil
	}
	if left := found.due.Sub(r.Clock.Now()); left > 0 {
		return nil, left, nil
	}
	open, err := r.breaker(ctx, node, claim)
	if err != nil {
		return nil, 0, err
	}
	if open {
		return nil, blockedRetry, nil
	}
	return &found, 0, nil
}

// replace sets the deadline of the drain to now and deletes the claim, in this
// order: a claim that is deleted without a deadline could drain forever if the
// Node recovers before the deadline is written. Both writes apply only to the
// version that was read, so that nothing decided from an old read is carried
// out and no claim is counted twice.
func (r *Reconciler) replace(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim, found diagnosis) error {
	if err := r.hurry(ctx, claim); err != nil {
		return err
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	uid, version := claim.UID, claim.ResourceVersion
	if err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
		return err
	}
	log.FromContext(ctx).Info("deleted node claim of unhealthy node", "NodeClaim", claim.Name,
		"condition", found.condition.Type, "status", found.condition.Status, "since", found.condition.LastTransitionTime)
	r.Recorder.Publish(repairing(node, found), repairing(claim, found))
	r.Disruptions.Forced(ctx, claim, "unhealthy")
	r.Metrics.Count(claim, found.condition.Type, meter.TerminationMode(claim))
	return nil
}

// hurry sets the deadline of the drain to now, unless it has passed. The claim
// becomes what was written.
func (r *Reconciler) hurry(ctx context.Context, claim *v1.NodeClaim) error {
	now := r.Clock.Now()
	deadline, err := time.Parse(time.RFC3339, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	if err == nil && !deadline.After(now) {
		return nil
	}
	return r.annotate(ctx, claim, func(annotations map[string]string) {
		if claim.DeletionTimestamp.IsZero() {
			annotations[v1.RepairDeadlineAnnotationKey] = "true"
		}
		annotations[v1.NodeClaimTerminationTimestampAnnotationKey] = now.UTC().Format(time.RFC3339)
	})
}

// withdraw removes the deadline that a repair has set on a claim it did not get
// to delete.
func (r *Reconciler) withdraw(ctx context.Context, claim *v1.NodeClaim) error {
	if claim.Annotations[v1.RepairDeadlineAnnotationKey] == "" || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.annotate(ctx, claim.DeepCopy(), func(annotations map[string]string) {
		delete(annotations, v1.RepairDeadlineAnnotationKey)
		delete(annotations, v1.NodeClaimTerminationTimestampAnnotationKey)
	})
}

// annotate changes the annotations of the claim if it is still as it was read.
func (r *Reconciler) annotate(ctx context.Context, claim *v1.NodeClaim, change func(map[string]string)) error {
	stored := claim.DeepCopy()
	claim.Annotations = maps.Clone(claim.Annotations)
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	change(claim.Annotations)
	err := r.Client.Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set deadline of node claim %s: %w", claim.Name, err)
	}
	return err
}
