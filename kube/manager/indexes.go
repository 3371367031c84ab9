// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
)

// Field indexes that caches serve beside those of package join.
const (
	VolumeAttachmentNodeName = "spec.nodeName"
	ClaimClass               = "spec.nodeClassRef"               // ".group", ".kind" or ".name" appended
	PoolClass                = "spec.template.spec.nodeClassRef" // as ClaimClass
)

// index finds objects by the value of a field. An object without a value is
// not found by any.
type index struct {
	object client.Object
	field  string
	value  func(client.Object) string
}

// indexes returns all field indexes the controllers read.
func indexes() []index {
	out := []index{
		{&corev1.Pod{}, join.PodNodeName, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }},
		{&corev1.Node{}, join.NodeProviderID, func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID }},
		{&storagev1.VolumeAttachment{}, VolumeAttachmentNodeName, func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName }},
		{&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID }},
	}
	for _, part := range []struct {
		name string
		of   func(*v1.NodeClassReference) string
	}{
		{".group", func(r *v1.NodeClassReference) string { return r.Group }},
		{".kind", func(r *v1.NodeClassReference) string { return r.Kind }},
		{".name", func(r *v1.NodeClassReference) string { return r.Name }},
	} {
		out = append(out,
			index{&v1.NodeClaim{}, ClaimClass + part.name, func(o client.Object) string { return orEmpty(o.(*v1.NodeClaim).Spec.NodeClassRef, part.of) }},
			index{&v1.NodePool{}, PoolClass + part.name, func(o client.Object) string {
				return orEmpty(o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef, part.of)
			}})
	}
	return out
}

func orEmpty(ref *v1.NodeClassReference, part func(*v1.NodeClassReference) string) string {
	if ref == nil {
		return ""
	}
	return part(ref)
}

// AddIndexes adds the field indexes that the controllers read.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range indexes() {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}

func (i index) values(o client.Object) []string {
	if v := i.value(o); v != "" {
		return []string{v}
	}
	return nil
}
