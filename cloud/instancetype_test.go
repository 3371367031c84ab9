// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// same reports whether two lists hold equal quantities.
func same(t *testing.T, what string, got, want corev1.ResourceList) {
	t.Helper()
	if !cloud.Holds(got, want) || !cloud.Holds(want, got) || len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, text(got), text(want))
	}
}

func text(l corev1.ResourceList) map[corev1.ResourceName]string {
	out := map[corev1.ResourceName]string{}
	for name, q := range l {
		out[name] = q.String()
	}
	return out
}

func TestAllocatable(t *testing.T) {
	for _, tc := range []struct {
		name           string
		capacity, want corev1.ResourceList
		overhead       cloud.Overhead
	}{
		{
			name:     "spec 55/3",
			capacity: list("cpu", "5", "memory", "20Gi", "hugepages-2Mi", "5Gi", "hugepages-1Gi", "10Gi"),
			overhead: cloud.Overhead{KubeReserved: list("cpu", "125m"), SystemReserved: list("memory", "1Gi")},
			want:     list("cpu", "4875m", "memory", "4Gi", "hugepages-2Mi", "5Gi", "hugepages-1Gi", "10Gi"),
		},
		{
			name:     "spec 55/4",
			capacity: list("cpu", "5", "memory", "20Gi", "hugepages-1Gi", "50Gi"),
			want:     list("cpu", "5", "memory", "0", "hugepages-1Gi", "50Gi"),
		},
		{
			name:     "the three parts of the overhead are added",
			capacity: list("cpu", "4", "memory", "8Gi"),
			overhead: cloud.Overhead{
				KubeReserved: list("memory", "1Gi", "cpu", "80m"), SystemReserved: list("memory", "2Gi"), EvictionThreshold: list("memory", "100Mi"),
			},
			want: list("cpu", "3920m", "memory", "5020Mi"),
		},
		{
			name:     "overhead of what is not there adds nothing",
			capacity: list("cpu", "1"),
			overhead: cloud.Overhead{KubeReserved: list("cpu", "2", "ephemeral-storage", "1Gi")},
			want:     list("cpu", "0"),
		},
	} {
		it := &cloud.InstanceType{Capacity: tc.capacity, Overhead: tc.overhead}
		before := text(tc.capacity)
		same(t, tc.name, it.Allocatable(), tc.want)
		if diff := cmp.Diff(before, text(tc.capacity)); diff != "" {
			t.Errorf("%s: the capacity was changed: %s", tc.name, diff)
		}
	}
}

// typeWithOverrides is the type of spec 55/5 with the offerings added to it in
// spec 55/6 when asked for.
func typeWithOverrides(overrides bool) *cloud.InstanceType {
	it := cloudtest.Type("t", "4", "16Gi",
		cloudtest.Offering("a", v1.CapacityTypeSpot, 1), cloudtest.Offering("b", v1.CapacityTypeSpot, 1))
	it.Capacity = list("cpu", "4", "memory", "16Gi")
	it.Overhead = cloud.Overhead{KubeReserved: list("cpu", "100m"), SystemReserved: list("memory", "1Gi")}
	if overrides {
		for _, zone := range []string{"c", "d"} {
			o := cloudtest.Offering(zone, v1.CapacityTypeSpot, 1)
			o.CapacityOverride, o.OverheadOverride = list("example.com/ext", "12"), list("memory", "3Gi")
			it.Offerings = append(it.Offerings, o)
		}
	}
	return it
}

func TestGroups(t *testing.T) {
	groups := typeWithOverrides(false).Groups() // spec 55/5
	if len(groups) != 1 || len(groups[0].Offerings) != 2 {
		t.Fatalf("groups %v, want one of two offerings", groups)
	}
	same(t, "spec 55/5", groups[0].Allocatable, list("cpu", "3900m", "memory", "15Gi"))

	groups = typeWithOverrides(true).Groups() // spec 55/6
	if len(groups) != 2 || len(groups[0].Offerings) != 2 || len(groups[1].Offerings) != 2 {
		t.Fatalf("groups %v, want two of two offerings", groups)
	}
	same(t, "spec 55/6 base", groups[0].Allocatable, list("cpu", "3900m", "memory", "15Gi"))
	same(t, "spec 55/6 second", groups[1].Allocatable, list("cpu", "3900m", "memory", "13Gi", "example.com/ext", "12"))

	none := typeWithOverrides(true) // spec 55/7
	for i := range none.Offerings {
		none.Offerings[i].Available = false
	}
	groups = none.Groups()
	if len(groups) != 1 || len(groups[0].Offerings) != 0 {
		t.Fatalf("groups %v, want the base without offerings", groups)
	}
	same(t, "spec 55/7", groups[0].Allocatable, list("cpu", "3900m", "memory", "15Gi"))
}

func TestChoices(t *testing.T) {
	unavailable := cloudtest.Offering("a", v1.CapacityTypeSpot, 0.01)
	unavailable.Available = false
	types := []*cloud.InstanceType{
		cloudtest.Type("big", "16", "64Gi", cloudtest.Offering("a", v1.CapacityTypeOnDemand, 8)),
		cloudtest.Type("b", "4", "16Gi", cloudtest.Offering("b", v1.CapacityTypeSpot, 1), cloudtest.Offering("a", v1.CapacityTypeSpot, 1)),
		cloudtest.Type("a", "4", "16Gi", cloudtest.Offering("b", v1.CapacityTypeSpot, 1), cloudtest.Offering("b", v1.CapacityTypeOnDemand, 2)),
		cloudtest.Type("out", "4", "16Gi", unavailable),
		typeWithOverrides(true),
	}
	for _, tc := range []struct {
		name     string
		demand   []model.Requirement
		requests corev1.ResourceList
		want     []string
	}{
		{"by price, type, zone", nil, nil, []string{
			"a/b/spot", "b/a/spot", "b/b/spot", "t/a/spot", "t/b/spot", "t/c/spot", "t/d/spot", "a/b/on-demand", "big/a/on-demand"}},
		{"by zone", []model.Requirement{model.NewRequirement(model.LabelZone, model.In, "b")}, nil,
			[]string{"a/b/spot", "b/b/spot", "t/b/spot", "a/b/on-demand"}},
		{"by size", nil, list("cpu", "5"), []string{"big/a/on-demand"}},
		{"by the offering's own resources", nil, list("example.com/ext", "1"), []string{"t/c/spot", "t/d/spot"}},
		{"less memory for the offering's overhead", []model.Requirement{model.NewRequirement(model.LabelInstanceType, model.In, "t")},
			list("memory", "14Gi"), []string{"t/a/spot", "t/b/spot"}},
		{"labels the type does not have are the claim's", []model.Requirement{model.NewRequirement("team", model.In, "a"),
			model.NewRequirement(model.LabelCapacityType, model.In, "on-demand")}, nil, []string{"a/b/on-demand", "big/a/on-demand"}},
		{"none", []model.Requirement{model.NewRequirement(model.LabelArch, model.In, "arm64")}, nil, nil},
	} {
		var got []string
		for c := range cloud.Choices(types, model.NewRequirements(tc.demand...), tc.requests) {
			got = append(got, c.Type.Name+"/"+c.Offering.Zone()+"/"+c.Offering.CapacityType())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestChoiceLabels(t *testing.T) {
	it := cloudtest.Type("t", "4", "16Gi", cloudtest.Offering("a", v1.CapacityTypeSpot, 1))
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"own": "label"}},
		Spec: v1.NodeClaimSpec{Requirements: []v1.NodeSelectorRequirementWithMinValues{
			{Key: "single", Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}},
			{Key: "several", Operator: corev1.NodeSelectorOpIn, Values: []string{"x", "y"}},
		}},
	}
	want := map[string]string{
		"own": "label", "single": "x", model.LabelInstanceType: "t", model.LabelArch: "amd64", model.LabelOS: "linux",
		model.LabelRegion: cloudtest.Region, model.LabelZone: "a", model.LabelCapacityType: "spot",
	}
	if diff := cmp.Diff(want, cloud.Choice{Type: it, Offering: &it.Offerings[0]}.Labels(claim)); diff != "" {
		t.Error(diff)
	}
	if len(claim.Labels) != 1 {
		t.Errorf("the claim's labels were changed: %v", claim.Labels)
	}
}

func TestTypesForDecisions(t *testing.T) {
	axis := model.NewAxis()
	it := typeWithOverrides(true)
	it.Capacity["example.com/gpu"] = resource.MustParse("2")
	got := cloud.Types(axis, []*cloud.InstanceType{it})[0]
	if got.Name != "t" || !got.Capacity.Equal(model.Resources{4000, 16 << 30, 0, 0, 1, 2}) {
		t.Errorf("%s with capacity %v", got.Name, got.Capacity)
	}
	if want := (model.Resources{3900, 15 << 30, 0, 0, 0, 2}); !got.Allocatable.Equal(want) {
		t.Errorf("allocatable %v, want %v", got.Allocatable, want)
	}
	if diff := cmp.Diff([]string{"cpu", "memory", "pods", "ephemeral-storage", "nodes", "example.com/gpu"}, axis.Names()); diff != "" {
		t.Errorf("axis: %s", diff)
	}
	for i, want := range []model.Offering{
		{Zone: "a", CapacityType: "spot", Price: model.Dollar, Available: true},
		{Zone: "b", CapacityType: "spot", Price: model.Dollar, Available: true},
		{Zone: "c", CapacityType: "spot", Price: model.Dollar}, // resources of its own
		{Zone: "d", CapacityType: "spot", Price: model.Dollar},
	} {
		want.Requirements = got.Offerings[i].Requirements
		if diff := cmp.Diff(want, got.Offerings[i]); diff != "" {
			t.Errorf("offering %d: %s", i, diff)
		}
	}
}

func TestOrphans(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	old, fresh := now.Add(-time.Minute), now.Add(-10*time.Second)
	claims := []v1.NodeClaim{
		{ObjectMeta: metav1.ObjectMeta{UID: "recorded"}, Status: v1.NodeClaimStatus{ProviderID: "m-recorded"}},
		{ObjectMeta: metav1.ObjectMeta{UID: "launching"}},
	}
	machine := func(id string, claim types.UID, created time.Time, deleting bool) *cloud.Machine {
		return &cloud.Machine{ProviderID: id, Claim: string(claim), ClaimUID: claim, Created: created, Deleting: deleting}
	}
	machines := []*cloud.Machine{
		machine("m-recorded", "", old, false),
		machine("m-launching", "launching", old, false), // its claim is about to record it
		machine("m-fresh", "gone", fresh, false),
		machine("m-ageless", "gone", time.Time{}, false),
		machine("m-deleting", "gone", old, true),
		machine("m-orphan", "gone", old, false),
		machine("m-stranger", "", old, false),
	}
	var got []string
	for _, m := range cloud.Orphans(machines, claims, now.Add(-30*time.Second)) {
		got = append(got, m.ProviderID)
		if r := m.Remnant(); r.Status.ProviderID != m.ProviderID || r.UID != m.ClaimUID || r.Name != m.Claim {
			t.Errorf("remnant of %s: %v", m.ProviderID, r)
		}
	}
	if diff := cmp.Diff([]string{"m-orphan", "m-stranger"}, got); diff != "" {
		t.Error(diff)
	}
}
