package cloud

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "karpenter/api/v1"
)

// Manages reports whether the provider serves the kind of NodeClass ref
// names. Controllers leave everything else alone. A nil ref is not managed.
func Manages(p Provider, ref *v1.NodeClassReference) bool {
	return ref != nil && slices.ContainsFunc(p.NodeClasses(), func(gvk schema.GroupVersionKind) bool {
		return gvk.GroupKind() == ref.GroupKind()
	})
}

// ManagesNode reports whether a Node with these labels belongs to the
// provider: it carries the label of one of its NodeClasses.
func ManagesNode(p Provider, labels map[string]string) bool {
	return slices.ContainsFunc(p.NodeClasses(), func(gvk schema.GroupVersionKind) bool {
		_, ok := labels[v1.NodeClassLabelKey(gvk.GroupKind())]
		return ok
	})
}
