// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/join"
)

// terminationPoll is how often the provider is asked whether the instance is
// gone.
const terminationPoll = 5 * time.Second

// finalize ends a deleted claim: its Nodes first, then its instance, then the
// claim itself.
func (r *Reconciler) finalize(ctx context.Context, s *scope) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(s.claim, v1.TerminationFinalizer) {
		r.memory.forget(s.claim.Name)
		return 0, nil
	}
	if machine := r.memory.machineOf(s.claim); machine != nil && s.claim.Status.ProviderID == "" {
		record(s.claim, machine)
	}
	r.stampDeadline(ctx, s)
	// Deletion raises the generation. Conditions left behind would make the
	// claim look unready for lack of an observer.
	s.conditions.Observe()
	after, finished, err := r.end(ctx, s)
	if written := r.persist(ctx, s); written != nil {
		return 0, written
	}
	if err != nil || !finished {
		return after, err
	}
	return 0, client.IgnoreNotFound(r.removeFinalizer(ctx, s))
}

// stampDeadline records the deadline of the drain on the claim, if its spec has
// a grace period and no deadline is set.
func (r *Reconciler) stampDeadline(ctx context.Context, s *scope) {
	period := s.claim.Spec.TerminationGracePeriod
	if period == nil || s.claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return
	}
	deadline := s.claim.DeletionTimestamp.Add(period.Duration).Format(time.RFC3339)
	s.claim.Annotations = merged(s.claim.Annotations, map[string]string{v1.NodeClaimTerminationTimestampAnnotationKey: deadline})
	s.afterwards(func() {
		log.FromContext(ctx).Info("node claim has a deadline to terminate", "deadline", deadline)
		r.Recorder.Publish(gracePeriodExpiring(s.claim, deadline))
	})
}

// end deletes the Nodes and then terminates the instance. It reports whether
// both are gone.
func (r *Reconciler) end(ctx context.Context, s *scope) (after time.Duration, finished bool, err error) {
	left, err := r.deleteNodes(ctx, s)
	if err != nil || left > 0 {
		return 0, false, err
	}
	if s.claim.Status.ProviderID == "" {
		return 0, true, nil
	}
	err = r.Provider.Delete(ctx, s.claim.DeepCopy())
	gone := cloud.IsNotFound(err)
	if err != nil && !gone {
		r.Recorder.Publish(failedTermination(s.claim, err))
		return 0, false, fmt.Errorf("terminate instance of node claim %s: %w", s.claim.Name, err)
	}
	s.conditions.SetTrue(v1.InstanceTerminatingCondition)
	if !gone {
		return terminationPoll, false, nil
	}
	return 0, true, nil
}

// deleteNodes deletes all Nodes of the claim and returns how many there still
// are. A Node that never registered is not ours to delete: the kubelet's lease
// would be left behind. The cloud's node controller removes it. A Node that is
// open for pods has to drain, even if neither the claim nor the cached Node
// shows that yet.
func (r *Reconciler) deleteNodes(ctx context.Context, s *scope) (int, error) {
	nodes, err := join.NodesOf(ctx, r.Client, s.claim)
	if err != nil {
		return 0, err
	}
	if !s.conditions.IsTrue(v1.RegisteredCondition) {
		nodes = slices.DeleteFunc(nodes, func(n corev1.Node) bool { return !isRegistered(&n) && !r.memory.hasReleased(s.claim, n.UID) })
	}
	for i := range nodes {
		if err := r.deleteNode(ctx, &nodes[i]); err != nil {
			return 0, err
		}
	}
	return len(nodes), nil
}

func (r *Reconciler) deleteNode(ctx context.Context, node *corev1.Node) error {
	if !node.DeletionTimestamp.IsZero() {
		return nil
	}
	uid := node.UID
	err := r.Client.Delete(ctx, node, client.Preconditions{UID: &uid})
	return client.IgnoreNotFound(err)
}

// removeFinalizer removes the finalizer and counts the claim.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) error {
	claim := s.stored.DeepCopy()
	controllerutil.RemoveFinalizer(claim, v1.TerminationFinalizer)
	if err := r.Client.Patch(ctx, claim, locked(s.stored)); err != nil {
		return err
	}
	r.memory.forget(claim.Name)
	log.FromContext(ctx).Info("terminated node claim")
	if terminating := s.conditions.Get(v1.InstanceTerminatingCondition); terminating != nil {
		r.Metrics.machineGone(claim, s.now.Sub(terminating.LastTransitionTime.Time))
	}
	r.Metrics.claimTerminated(claim, s.now.Sub(claim.DeletionTimestamp.Time))
	return nil
}
