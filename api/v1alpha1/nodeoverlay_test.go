// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
)

func TestValidateNodeOverlay(t *testing.T) {
	for _, c := range []struct {
		name string
		spec v1alpha1.NodeOverlaySpec
		want string
	}{
		{name: "nothing"},
		{name: "spec 10/32 pool key", spec: requirement("karpenter.sh/nodepool", corev1.NodeSelectorOpIn, "a")},
		{name: "restricted domain", spec: requirement("karpenter.sh/other", corev1.NodeSelectorOpIn, "a"), want: `"karpenter.sh/other" is restricted`},
		{name: "spec 10/33 capacity type", spec: requirement("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn, "foo"), want: `no value of ["foo"] is known`},
		{name: "spec 10/46 In", spec: requirement("k", corev1.NodeSelectorOpIn), want: "operator In needs at least one value"},
		{name: "spec 10/46 NotIn", spec: requirement("k", corev1.NodeSelectorOpNotIn), want: "spec.requirements[0]: key \"k\": operator NotIn needs at least one value"},
		{name: "spec 10/48 extended resource", spec: capacity("smarter-devices/fuse")},
		{name: "spec 10/48 cpu", spec: capacity("cpu"), want: "spec.capacity[cpu]"},
		{name: "negative", spec: quantity("smarter-devices/fuse", "-1"), want: "spec.capacity[smarter-devices/fuse]: -1 is negative"},
		{name: "spec 10/48 pods", spec: capacity("pods"), want: "spec.capacity[pods]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := v1alpha1.ValidateNodeOverlay(&v1alpha1.NodeOverlay{Spec: c.spec}, v1.DefaultLabels())
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func requirement(key string, operator corev1.NodeSelectorOperator, values ...string) v1alpha1.NodeOverlaySpec {
	return v1alpha1.NodeOverlaySpec{Requirements: []v1alpha1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func capacity(name corev1.ResourceName) v1alpha1.NodeOverlaySpec { return quantity(name, "1") }

func quantity(name corev1.ResourceName, q string) v1alpha1.NodeOverlaySpec {
	return v1alpha1.NodeOverlaySpec{Capacity: corev1.ResourceList{name: resource.MustParse(q)}}
}

func TestCompare(t *testing.T) {
	overlay := func(name string, weight int32) *v1alpha1.NodeOverlay {
		o := &v1alpha1.NodeOverlay{}
		o.Name = name
		if weight > 0 {
			o.Spec.Weight = &weight
		}
		return o
	}
	overlays := []*v1alpha1.NodeOverlay{overlay("a", 0), overlay("z", 0), overlay("b", 10), overlay("c", 10), overlay("a", 11)}
	slices.SortFunc(overlays, v1alpha1.Compare)
	var got []string
	for _, o := range overlays {
		got = append(got, o.Name)
	}
	if want := []string{"a", "c", "b", "z", "a"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}
