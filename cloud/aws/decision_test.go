// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/cloud/aws/launch"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
)

// Equal demands of equal types are decided on once; what differs in anything is
// decided on again.
func TestDecisions(t *testing.T) {
	want := func(change func(*launch.Want)) *launch.Want {
		w := &launch.Want{
			Labels: model.NewRequirements(
				model.NewRequirement(model.LabelZone, model.In, "test-zone-1", "test-zone-2"),
				model.NewRequirement("example.com/cores", model.Gt, "2"),
			),
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}
		change(w)
		return w
	}
	same := func(*launch.Want) {}
	types := cloudtest.DefaultTypes()
	var d decisions
	first := d.of(types, want(same))
	for name, c := range map[string]struct {
		change func(*launch.Want)
		shared bool
	}{
		"same":     {same, true},
		"relaxed":  {func(w *launch.Want) { w.Relaxed = true }, false},
		"requests": {func(w *launch.Want) { w.Requests[corev1.ResourceCPU] = resource.MustParse("1001m") }, false},
		"a value":  {func(w *launch.Want) { w.Labels[1].Values = []string{"test-zone-1"} }, false},
		"joined":   {func(w *launch.Want) { w.Labels[1].Values = []string{"test-zone-1 test-zone-2"} }, false},
		"bound":    {func(w *launch.Want) { w.Labels[0].Gte.N++ }, false},
		"variety":  {func(w *launch.Want) { w.Labels[1].MinValues = 2 }, false},
		"presence": {func(w *launch.Want) { w.Labels[1].Present = true }, false},
		"excluded": {func(w *launch.Want) { w.Labels[1].Complement = true }, false},
	} {
		if got := d.of(types, want(c.change)) == first; got != c.shared {
			t.Errorf("%s: shared %v", name, got)
		}
	}
	candidates, why := d.narrow(types, want(same))
	wanted, wantedWhy := launch.Narrow(types, want(same))
	check(t, "candidates", len(candidates), len(wanted))
	check(t, "why", why, wantedWhy)
	if d.of(slices.Concat(types[:2], cloudtest.DefaultTypes()[2:]), want(same)) == first {
		t.Error("shared though a type has changed")
	}
	// A field that is added must be added to demandOf.
	check(t, "fields", []int{reflect.TypeFor[launch.Want]().NumField(), reflect.TypeFor[model.Requirement]().NumField()}, []int{3, 7})
}
