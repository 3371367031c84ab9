// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/kube/join"
)

// register makes the claim's Node its own: the Node gets the claim's
// metadata and taints, and is released to pods.
func (r *Reconciler) register(ctx context.Context, s *scope) (time.Duration, error) {
	if s.isSettled(v1.RegisteredCondition) {
		return 0, nil
	}
	read, err := join.NodeOf(ctx, r.Client, s.claim)
	switch {
	case errors.Is(err, join.ErrNotFound):
		s.conditions.SetUnknownWithReason(v1.RegisteredCondition, v1.NodeNotFoundReason, "no node has joined the cluster for it yet")
		return 0, nil
	case errors.Is(err, join.ErrDuplicate):
		s.conditions.SetFalse(v1.RegisteredCondition, v1.MultipleNodesFoundReason, "several nodes have its provider ID")
		return 0, nil
	case err != nil:
		return 0, err
	}
	if !isRegistered(read) && !hasTaint(read, v1.UnregisteredNoExecuteTaint()) {
		log.FromContext(ctx).Error(nil, "node joined without the unregistered taint, so pods may have been bound too early",
			"Node", klog.KRef("", read.Name), "taint", v1.UnregisteredTaintKey)
		r.Recorder.Publish(unregisteredTaintMissing(s.claim, read.Name))
	}
	node := read.DeepCopy()
	adopt(s.claim, node)
	pending := r.runHooks(ctx, s.claim)
	if len(pending.names) > 0 {
		s.conditions.SetUnknownWithReason(v1.RegisteredCondition, v1.RegistrationHookPendingReason, pending.message())
		return pending.after, errors.Join(pending.err, r.patchNode(ctx, read, node))
	}
	adopt(s.claim, node)
	release(node)
	if err := r.patchNode(ctx, read, node); err != nil {
		return 0, err
	}
	r.memory.released(s.claim, node.UID)
	s.node = node
	s.claim.Status.NodeName = node.Name
	s.conditions.SetTrue(v1.RegisteredCondition)
	r.Health.Succeeded(s.claim)
	s.afterwards(func() {
		log.FromContext(ctx).Info("registered node claim", "Node", klog.KRef("", node.Name))
		r.Metrics.nodeCreated(s.claim)
	})
	return 0, nil
}

// adopt copies onto the node what its claim prescribes. Doing it again
// changes nothing.
func adopt(claim *v1.NodeClaim, node *corev1.Node) {
	controllerutil.AddFinalizer(node, v1.TerminationFinalizer)
	own(claim, node)
	if node.Labels[v1.NodeDoNotSyncTaintsLabelKey] != "true" {
		addTaints(node, claim.Spec.Taints)
		addTaints(node, claim.Spec.StartupTaints)
	}
	node.Labels = merged(node.Labels, claim.Labels)
	node.Annotations = merged(node.Annotations, claim.Annotations)
	delete(node.Annotations, unreadable.AnnotationKey) // it exists in memory only
	delete(node.Annotations, v1.RequestedDRADriversAnnotationKey)
}

// release marks the node as registered and lets pods on it.
func release(node *corev1.Node) {
	unregistered := v1.UnregisteredNoExecuteTaint()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&unregistered)
	})
	node.Labels = merged(node.Labels, map[string]string{v1.NodeRegisteredLabelKey: "true"})
}

// own makes the claim an owner of the node, once.
func own(claim *v1.NodeClaim, node *corev1.Node) {
	for _, o := range node.OwnerReferences {
		if o.UID == claim.UID {
			return
		}
	}
	block := true
	node.OwnerReferences = append(node.OwnerReferences, metav1.OwnerReference{
		APIVersion:         v1.GroupVersion().String(),
		Kind:               "NodeClaim",
		Name:               claim.Name,
		UID:                claim.UID,
		BlockOwnerDeletion: &block,
	})
}

// addTaints adds those taints whose key and effect the node does not have.
func addTaints(node *corev1.Node, taints []v1.Taint) {
	for _, t := range v1.CoreTaints(taints) {
		if !hasTaint(node, t) {
			node.Spec.Taints = append(node.Spec.Taints, t)
		}
	}
}

func isRegistered(node *corev1.Node) bool {
	_, ok := node.Labels[v1.NodeRegisteredLabelKey]
	return ok
}

// hasTaint reports whether the node has a taint of the same key and effect.
func hasTaint(node *corev1.Node, taint corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

// patchNode writes the node over what was read of it, if it differs. The node
// then is what the API server answered.
func (r *Reconciler) patchNode(ctx context.Context, read, node *corev1.Node) error {
	if equality.Semantic.DeepEqual(read, node) {
		return nil
	}
	return r.Client.Patch(ctx, node, locked(read))
}
