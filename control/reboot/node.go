// SPDX-License-Identifier: Apache-2.0

package reboot

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
)

func isOurs(t corev1.Taint) bool {
	taint := v1.RebootingNoScheduleTaint()
	return t.MatchTaint(&taint)
}

// taint keeps new pods off the Node.
func (r *Reconciler) taint(ctx context.Context, node *corev1.Node) error {
	if slices.ContainsFunc(node.Spec.Taints, isOurs) {
		return nil
	}
	stored := node.DeepCopy()
	node.Spec.Taints = append(slices.Clone(node.Spec.Taints), v1.RebootingNoScheduleTaint())
	return r.Client.Patch(ctx, node, locked(stored))
}

func (r *Reconciler) untaint(ctx context.Context, node *corev1.Node) error {
	if !slices.ContainsFunc(node.Spec.Taints, isOurs) {
		return nil
	}
	stored := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isOurs)
	return r.Client.Patch(ctx, node, locked(stored))
}

// uninitialize has the Node pass the checks of its initialization again.
func (r *Reconciler) uninitialize(ctx context.Context, node *corev1.Node) error {
	if _, is := node.Labels[v1.NodeInitializedLabelKey]; !is {
		return nil
	}
	stored := node.DeepCopy()
	node.Labels = maps.Clone(node.Labels)
	delete(node.Labels, v1.NodeInitializedLabelKey)
	return r.Client.Patch(ctx, node, locked(stored))
}
