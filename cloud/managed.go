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
