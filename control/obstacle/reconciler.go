// SPDX-License-Identifier: Apache-2.0

package obstacle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
	"karpenter/kube/join"
	"karpenter/kube/pods"
)

const (
	// named is how many pods a message names before it counts the rest.
	named = 3
)

// Reconciler is the controller nodeclaim.obstacle. All fields are required;
// Client serves the indexes of package join.
type Reconciler struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
	Recorder events.Recorder
}

// Reconcile keeps the condition of one claim.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, stored); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !cloud.Manages(r.Provider, stored.Spec.NodeClassRef) {
		return reconcile.Result{}, nil
	}
	claim := stored.DeepCopy()
	node, found, err := r.find(ctx, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.tell(claim, found); err != nil {
		return reconcile.Result{}, err
	}
	if !equality.Semantic.DeepEqual(stored.Status, claim.Status) {
		err := r.Client.Status().Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return reconcile.Result{Requeue: true}, nil
		}
		if err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if len(found) > 0 {
		r.Recorder.Publish(blocked(node, claim, found), blocked(claim, claim, found))
	}
	return reconcile.Result{}, nil
}

// obstacle is a pod that stays, and why.
type obstacle struct {
	pod string // namespace/name
	pods.Obstacle
}

// find returns the obstacles on the claim's node by name, none while they do
// not matter.
func (r *Reconciler) find(ctx context.Context, claim *v1.NodeClaim) (*corev1.Node, []obstacle, error) {
	if !matters(claim) {
		return nil, nil, nil
	}
	node, err := join.NodeOf(ctx, r.Client, claim)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{join.PodNodeName: node.Name}); err != nil {
		return nil, nil, fmt.Errorf("list pods of node %s: %w", node.Name, err)
	}
	budgets := map[string][]policyv1.PodDisruptionBudget{} // by namespace
	var out []obstacle
	for i := range list.Items {
		p := &list.Items[i]
		if _, read := budgets[p.Namespace]; !read {
			own := &policyv1.PodDisruptionBudgetList{}
			if err := r.Client.List(ctx, own, client.InNamespace(p.Namespace)); err != nil {
				return nil, nil, fmt.Errorf("list pod disruption budgets of %s: %w", p.Namespace, err)
			}
			budgets[p.Namespace] = own.Items
		}
		o, err := pods.ObstacleOf(p, budgets[p.Namespace], r.Clock.Now())
		if err != nil {
			return nil, nil, err
		}
		if o != nil {
			out = append(out, obstacle{p.Namespace + "/" + p.Name, *o})
		}
	}
	slices.SortFunc(out, func(a, b obstacle) int { return strings.Compare(a.pod, b.pod) })
	return node, out, nil
}

// matters reports whether pods that never leave are in the way of something:
// of a drain that is not over, or of replacing a drifted node. A claim that
// never registered ends without a drain, and drift waits for no pod of a claim
// with a grace period.
func matters(claim *v1.NodeClaim) bool {
	if !claim.DeletionTimestamp.IsZero() {
		return conditions.IsTrue(claim, v1.RegisteredCondition) && !conditions.IsTrue(claim, v1.DrainedCondition)
	}
	return conditions.IsTrue(claim, v1.DriftedCondition) && claim.Spec.TerminationGracePeriod == nil
}

// tell sets the condition of the claim from the obstacles.
func (r *Reconciler) tell(claim *v1.NodeClaim, found []obstacle) error {
	if len(found) > 0 {
		claim.StatusConditions(r.Clock.Now()).SetTrueWithReason(v1.DrainBlockedCondition, found[0].Reason, describe(claim, found))
		return nil
	}
	if conditions.Get(claim, v1.DrainBlockedCondition) == nil {
		return nil
	}
	return claim.StatusConditions(r.Clock.Now()).Clear(v1.DrainBlockedCondition)
}

// describe prints which pods stay, why, and until when.
func describe(claim *v1.NodeClaim, found []obstacle) string {
	var texts []string
	for _, o := range found[:min(named, len(found))] {
		texts = append(texts, fmt.Sprintf("pod %s is never evicted: %s", o.pod, o.Why))
	}
	if more := len(found) - named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more pods", more))
	}
	text := strings.Join(texts, "; ")
	if claim.DeletionTimestamp.IsZero() {
		return text + ". Until that is changed the drifted node is not replaced"
	}
	deadline, err := time.Parse(time.RFC3339, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	if err == nil {
		return text + ". Until that is changed the node stays, at most until " + deadline.UTC().Format(time.RFC3339)
	}
	return text + ". Until that is changed the node stays"
}

func blocked(o client.Object, claim *v1.NodeClaim, found []obstacle) events.Event {
	message := describe(claim, found)
	return events.Event{
		Object: o, Type: corev1.EventTypeWarning, Reason: v1.DrainBlockedCondition, Message: message,
		Dedupe: []string{string(o.GetUID()), message}, Timeout: 15 * time.Minute,
	}
}
