// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "karpenter/api/v1"
)

// Manages reports whether the provider serves the kind of NodeClass that ref
// names. Controllers ignore objects of other providers. A nil ref is not
// managed.
func Manages(p Provider, ref *v1.NodeClassReference) bool {
	return ref != nil && slices.ContainsFunc(p.NodeClasses(), func(gvk schema.GroupVersionKind) bool {
		return gvk.GroupKind() == ref.GroupKind()
	})
}

// ManagesNode reports whether the Node carries the label of a kind of
// NodeClass the provider serves.
func ManagesNode(p interface {
	NodeClasses() []schema.GroupVersionKind
}, node *corev1.Node) bool {
	return slices.ContainsFunc(p.NodeClasses(), func(gvk schema.GroupVersionKind) bool {
		_, ok := node.Labels[v1.NodeClassLabelKey(gvk.GroupKind())]
		return ok
	})
}
