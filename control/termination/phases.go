// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/join"
	"karpenter/kube/pods"
)

// excludedBy is the value of the label that takes a Node out of external load
// balancers.
const excludedBy = "karpenter"

// keepPodsAway taints the Node, so that the scheduler adds no pods, and
// excludes it from load balancers.
func (r *Reconciler) keepPodsAway(ctx context.Context, s *scope) (time.Duration, error) {
	taint := v1.DisruptedNoScheduleTaint()
	stored := s.node.DeepCopy()
	tainted := false
	s.node.Spec.Taints = slices.DeleteFunc(s.node.Spec.Taints, func(t corev1.Taint) bool {
		if t.MatchTaint(&taint) {
			tainted = true
			return false
		}
		return t.Key == taint.Key
	})
	if !tainted {
		s.node.Spec.Taints = append(s.node.Spec.Taints, taint)
	}
	if s.node.Labels == nil {
		s.node.Labels = map[string]string{}
	}
	labelled := s.node.Labels[corev1.LabelNodeExcludeBalancers] == excludedBy
	s.node.Labels[corev1.LabelNodeExcludeBalancers] = excludedBy
	if tainted && labelled && len(stored.Spec.Taints) == len(s.node.Spec.Taints) {
		return 0, nil
	}
	err := r.Client.Patch(ctx, s.node, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return 0, err // Reconcile tries again
	}
	if err != nil {
		return 0, fmt.Errorf("taint node %s: %w", stored.Name, err)
	}
	log.FromContext(ctx).Info("tainted node", "taint", taint.ToString())
	return 0, nil
}

// drain evicts the pods from the Node, tier by tier.
func (r *Reconciler) drain(ctx context.Context, s *scope) (time.Duration, error) {
	if err := readPods(ctx, r.Client, s); err != nil {
		return 0, err
	}
	var conditionSince *metav1.Time
	if s.claim != nil {
		set := s.claim.StatusConditions(s.now)
		if set.Get(v1.DrainedCondition) == nil {
			set.SetUnknownWithReason(v1.DrainedCondition, v1.DrainingReason, "")
		}
		if c := set.Get(v1.DrainedCondition); c.Status == metav1.ConditionUnknown {
			conditionSince = &c.LastTransitionTime
		}
	}
	if waiting := r.evict(s); len(waiting) > 0 {
		return pace(s, waiting), nil
	}
	if conditionSince != nil && s.now.Sub(conditionSince.Time) < drainAtLeast {
		return drainPoll, nil
	}
	if conditionSince != nil {
		// The cache can be late with pods that were bound before the taint.
		if err := readPods(ctx, r.Live, s); err != nil {
			return 0, err
		}
		if waiting := r.evict(s); len(waiting) > 0 {
			return pace(s, waiting), nil
		}
	}
	if s.claim != nil {
		s.claim.StatusConditions(s.now).SetTrue(v1.DrainedCondition)
	}
	return 0, nil
}

func readPods(ctx context.Context, from client.Reader, s *scope) error {
	list := &corev1.PodList{}
	if err := from.List(ctx, list, client.MatchingFields{join.PodNodeName: s.node.Name}); err != nil {
		return fmt.Errorf("list pods of node %s: %w", s.node.Name, err)
	}
	s.pods = nil
	for i := range list.Items {
		s.pods = append(s.pods, &list.Items[i])
	}
	return nil
}

// evict queues the pods whose turn it is to leave, and returns all that the
// drain waits for.
func (r *Reconciler) evict(s *scope) (waiting []*corev1.Pod) {
	waiting, forced, graceful := r.sort(s)
	r.Evictions.Add(s.deadline, forced...)
	r.Evictions.Add(s.deadline, slices.DeleteFunc(firstTier(graceful), pods.Terminating)...)
	if len(waiting) > 0 {
		r.Events.Publish(drainWaits(s.node, waiting))
	}
	return waiting
}

// sort returns the pods that the drain waits for, and divides them into forced
// pods and others. It publishes events about protected pods.
func (r *Reconciler) sort(s *scope) (waiting, forced, graceful []*corev1.Pod) {
	for _, p := range s.pods {
		if !pods.Waiting(p, s.now) {
			continue
		}
		waiting = append(waiting, p)
		if mustForce(p, s.deadline, s.now) {
			forced = append(forced, p)
			continue
		}
		graceful = append(graceful, p)
		if pods.Active(p) {
			r.Events.Publish(pods.ProtectionOf(p, s.now).Events(p)...)
		}
	}
	return waiting, forced, graceful
}

// firstTier returns the pods that are to leave first, terminating ones
// included: workloads before daemons, and critical pods after all others.
func firstTier(all []*corev1.Pod) []*corev1.Pod {
	var tiers [4][]*corev1.Pod
	for _, p := range all {
		tier := 0
		if pods.DaemonSet(p) {
			tier++
		}
		if pods.Critical(p) {
			tier += 2
		}
		tiers[tier] = append(tiers[tier], p)
	}
	for _, tier := range tiers {
		if len(tier) > 0 {
			return tier
		}
	}
	return nil
}

// requireDeadline stops the pass while the deadline cannot be read: what
// follows the drain depends on it.
func (r *Reconciler) requireDeadline(_ context.Context, s *scope) (time.Duration, error) {
	if s.unknown {
		return drainPoll, nil
	}
	return 0, nil
}

// endMachine terminates the instance of the claim. Without a claim, the
// instance of a Node is unknown.
func (r *Reconciler) endMachine(ctx context.Context, s *scope) (time.Duration, error) {
	if s.claim == nil {
		return 0, nil
	}
	err := r.Machines.Delete(ctx, s.claim)
	if err != nil && !cloud.IsNotFound(err) {
		r.Events.Publish(machineStays(s.node, err))
		return 0, fmt.Errorf("terminate instance of node claim %s: %w", s.claim.Name, err)
	}
	s.claim.StatusConditions(s.now).SetTrue(v1.InstanceTerminatingCondition)
	if err == nil {
		return machinePoll, nil
	}
	return 0, nil
}
