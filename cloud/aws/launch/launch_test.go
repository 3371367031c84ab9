// SPDX-License-Identifier: Apache-2.0

package launch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/launch"
	"karpenter/model"
)

// offer is an offering in short: "zone:spot:3", "zone:on-demand:3",
// "zone:reserved:cr-1:default:5:3" with 5 launches left at a price of 3, with
// "zone:reserved:cr-1:interruptible:…" and "…:block:…" for the other kinds. A
// "-" in front: not available. "/2" behind: partition 2.
func offer(t *testing.T, text string) cloud.Offering {
	t.Helper()
	text, partition, inGroup := strings.Cut(text, "/")
	text, sold := strings.CutPrefix(text, "-")
	fields := strings.Split(text, ":")
	o := cloud.Offering{Available: !sold, Requirements: model.NewRequirements(
		model.NewRequirement(model.LabelZone, model.In, fields[0]),
		model.NewRequirement(model.LabelCapacityType, model.In, fields[1]))}
	if inGroup {
		o.Requirements = o.Requirements.And(model.NewRequirement(awsv1.PlacementGroupPartitionLabelKey, model.In, partition))
	}
	if fields[1] == model.Reserved {
		o.ReservationID = fields[2]
		if _, err := fmt.Sscan(fields[4], &o.ReservationCapacity); err != nil {
			t.Fatal(err)
		}
		kind := map[bool]string{true: "capacity-block", false: "default"}[fields[3] == "block"]
		o.Requirements = o.Requirements.And(
			model.NewRequirement(awsv1.CapacityReservationIDLabelKey, model.In, fields[2]),
			model.NewRequirement(awsv1.CapacityReservationTypeLabelKey, model.In, kind),
			model.NewRequirement(awsv1.CapacityReservationInterruptibleLabelKey, model.In, fmt.Sprint(fields[3] == "interruptible")))
	}
	if _, err := fmt.Sscan(fields[len(fields)-1], &o.Price); err != nil {
		t.Fatal(err)
	}
	return o
}

// machine is a type with four processors and what else it has.
func machine(t *testing.T, name string, extra corev1.ResourceName, offers ...string) *cloud.InstanceType {
	family, size, _ := strings.Cut(name, ".")
	it := &cloud.InstanceType{
		Name: name,
		Requirements: model.NewRequirements(
			model.NewRequirement(model.LabelInstanceType, model.In, name),
			model.NewRequirement(awsv1.InstanceFamilyLabelKey, model.In, family),
			model.NewRequirement(awsv1.InstanceSizeLabelKey, model.In, size)),
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}
	if extra != "" {
		it.Capacity[extra] = resource.MustParse("1")
	}
	for _, text := range offers {
		it.Offerings = append(it.Offerings, offer(t, text))
	}
	return it
}

// wanting is a claim that allows the capacity types.
func wanting(capacityTypes ...string) *launch.Want {
	return &launch.Want{
		Labels:   model.NewRequirements(model.NewRequirement(model.LabelCapacityType, model.In, capacityTypes...)),
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
	}
}

func and(w *launch.Want, more ...model.Requirement) *launch.Want {
	w.Labels = w.Labels.And(more...)
	return w
}

func families(n int) model.Requirement {
	r := model.NewRequirement(awsv1.InstanceFamilyLabelKey, model.Exists)
	r.MinValues = n
	return r
}

// show prints a launch: its capacity type, then the alternatives.
func show(candidates []launch.Candidate, want *launch.Want) string {
	capacityType := launch.CapacityType(candidates, want)
	out := []string{launch.Market(candidates, capacityType)}
	for _, o := range launch.Overrides(candidates, capacityType) {
		out = append(out, strings.TrimSuffix(o.InstanceType+"@"+o.Zone+"+"+o.ReservationID, "+"))
	}
	return strings.Join(out, " ")
}

func TestNarrow(t *testing.T) {
	const both, all = "spot,on-demand", "spot,on-demand,reserved"
	gpu := func(w *launch.Want) { w.Requests[instancetype.ResourceNvidiaGPU] = resource.MustParse("1") }
	varied := func(w *launch.Want) { and(w, families(2)) }
	type types []*cloud.InstanceType
	for _, c := range []struct {
		name   string
		types  types
		allows string
		change func(*launch.Want)
		want   string
	}{
		{"spec 65/72 spot first", types{machine(t, "m5.large", "", "a:spot:1", "a:on-demand:3")}, both, nil, "spot m5.large@a"},
		{"spec 65/72 no spot left", types{machine(t, "m5.large", "", "-a:spot:1", "a:on-demand:3")}, both, nil, "on-demand m5.large@a"},
		{"spec 65/73 spot not allowed", types{machine(t, "m5.large", "", "a:spot:1", "a:on-demand:3")}, model.OnDemand, nil, "on-demand m5.large@a"},
		{"spec 65/74 dear spot", types{
			machine(t, "m5.large", "", "a:spot:4", "b:spot:3", "a:on-demand:3"), machine(t, "c5.large", "", "a:spot:5"),
		}, both, nil, "spot m5.large@b"},
		{"spec 65/74 with minValues", types{
			machine(t, "m5.large", "", "a:spot:4", "b:spot:3", "a:on-demand:3"), machine(t, "c5.large", "", "a:spot:5"),
		}, both, varied, "spot m5.large@a m5.large@b c5.large@a"},
		{"spec 65/75 exotic types", types{
			machine(t, "m5.metal", "", "a:spot:1"), machine(t, "g4dn.large", instancetype.ResourceNvidiaGPU, "a:spot:1"), machine(t, "m5.large", "", "a:spot:2"),
		}, both, nil, "spot m5.large@a"},
		{"spec 65/75 a GPU is requested", types{
			machine(t, "m5.metal", "", "a:spot:1"), machine(t, "g4dn.large", instancetype.ResourceNvidiaGPU, "a:spot:1"), machine(t, "m5.large", "", "a:spot:2"),
		}, both, gpu, "spot g4dn.large@a"},
		{"spec 65/75 with minValues", types{
			machine(t, "m5.metal", "", "a:spot:1"), machine(t, "g4dn.large", instancetype.ResourceNvidiaGPU, "a:spot:1"), machine(t, "m5.large", "", "a:spot:2"),
		}, both, varied, "spot g4dn.large@a m5.metal@a m5.large@a"},
		{"spec 65/77 partitions", types{machine(t, "m5.large", "", "a:spot:1/1", "a:spot:1/2", "b:spot:1/1")}, both, nil, "spot m5.large@a m5.large@b"},
		{"spec 65/78 most left", types{
			machine(t, "m5.large", "", "a:reserved:cr-1:default:5:1", "a:reserved:cr-2:default:10:1", "b:reserved:cr-3:default:1:1", "a:on-demand:300"),
		}, all, nil, "on-demand m5.large@a+cr-2 m5.large@b+cr-3"},
		{"spec 65/79 plain before interruptible", types{
			machine(t, "m5.large", "", "a:reserved:cr-1:interruptible:5:1", "b:reserved:cr-2:default:5:1"),
		}, all, nil, "on-demand m5.large@b+cr-2"},
		{"spec 65/79 plain before block", types{
			machine(t, "m5.large", "", "a:reserved:cr-1:block:5:1", "b:reserved:cr-2:default:5:1"),
		}, all, nil, "on-demand m5.large@b+cr-2"},
		{"spec 65/79 block before interruptible", types{
			machine(t, "m5.large", "", "a:reserved:cr-1:interruptible:5:1", "b:reserved:cr-2:block:5:1"),
		}, all, nil, "capacity-block m5.large@b+cr-2"},
		{"a cheaper kind first", types{
			machine(t, "m5.large", "", "a:reserved:cr-1:interruptible:5:1", "b:reserved:cr-2:default:5:2"),
		}, all, nil, "reserved-capacity m5.large@a+cr-1"},
		{"spec 65/80 one block", types{
			machine(t, "p5.large", "", "a:reserved:cr-1:block:5:2", "b:reserved:cr-2:block:5:1"), machine(t, "p4.large", "", "a:reserved:cr-3:block:5:1"),
		}, all, nil, "capacity-block p5.large@b+cr-2"},
		{"spec 65/81 interruptible", types{machine(t, "m5.large", "", "a:reserved:cr-1:interruptible:5:1", "a:spot:2")}, all, nil, "reserved-capacity m5.large@a+cr-1"},
		{"spec 65/83 none left", types{
			machine(t, "m5.large", "", "-a:reserved:cr-1:default:0:1", "a:on-demand:3"),
		}, "reserved,on-demand", nil, "on-demand m5.large@a"},
		{"spec 48/89 a full block, and on-demand is allowed", types{
			machine(t, "p5.large", "", "-a:reserved:cr-1:block:0:1", "a:on-demand:3"),
		}, "reserved,on-demand", nil, "on-demand p5.large@a"},
		{"spec 48/89 a full block is not chosen over a dearer one", types{
			machine(t, "p5.large", "", "-a:reserved:cr-1:block:0:1", "b:reserved:cr-2:block:5:2"),
		}, all, nil, "capacity-block p5.large@b+cr-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := wanting(strings.Split(c.allows, ",")...)
			if c.change != nil {
				c.change(want)
			}
			candidates, why := launch.Narrow(c.types, want)
			if got := show(candidates, want); got != c.want || why != "" {
				t.Errorf("%s (%s), want %s", got, why, c.want)
			}
		})
	}
}

func TestLaunchWithoutCandidates(t *testing.T) {
	large := wanting(model.Spot)
	large.Requests[corev1.ResourceCPU] = resource.MustParse("5")
	for _, want := range []*launch.Want{
		wanting(model.OnDemand), large, and(wanting(model.Spot), model.NewRequirement(model.LabelZone, model.In, "b")),
		and(wanting(model.Spot), model.NewRequirement(awsv1.InstanceFamilyLabelKey, model.In, "c5")),
	} {
		candidates, why := launch.Narrow([]*cloud.InstanceType{machine(t, "m5.large", "", "a:spot:1", "-a:on-demand:1")}, want)
		if len(candidates) > 0 || why == "" {
			t.Errorf("%s: %d left, %q", want.Labels, len(candidates), why)
		}
	}
}

// An offering with resources of its own is judged by them.
func TestOverrides(t *testing.T) {
	it := machine(t, "m5.large", "", "a:spot:1", "b:spot:1")
	it.Offerings[1].CapacityOverride = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	want := wanting(model.Spot)
	want.Requests[corev1.ResourceCPU] = resource.MustParse("6")
	candidates, _ := launch.Narrow([]*cloud.InstanceType{it}, want)
	if got := show(candidates, want); got != "spot m5.large@b" {
		t.Error(got)
	}
}

// spec 65/76: a launch names the 60 cheapest types, among them what minValues
// need.
func TestTruncate(t *testing.T) {
	var types []*cloud.InstanceType
	for i := range 100 {
		types = append(types, machine(t, fmt.Sprintf("f%02d.s%02d", i/50, i), "", fmt.Sprintf("a:spot:%d", 1+i)))
	}
	slices.Reverse(types)
	names := func(want *launch.Want) ([]string, string) {
		candidates, why := launch.Narrow(types, want)
		var out []string
		for _, c := range candidates {
			out = append(out, c.Type.Name)
		}
		return out, why
	}
	var cheapest []string
	for i := range 60 {
		cheapest = append(cheapest, fmt.Sprintf("f%02d.s%02d", i/50, i))
	}
	got, _ := names(wanting(model.Spot))
	if diff := cmp.Diff(cheapest, got); diff != "" {
		t.Error(diff)
	}

	zones := model.NewRequirement(awsv1.InstanceSizeLabelKey, model.Exists)
	zones.MinValues = 61
	if got, why := names(and(wanting(model.Spot), zones)); got != nil || !strings.HasPrefix(why, "truncating instance types") {
		t.Errorf("61 sizes: %d types, %q", len(got), why)
	}
	relaxed := and(wanting(model.Spot), zones)
	relaxed.Relaxed = true
	if got, why := names(relaxed); len(got) != 60 || why != "" {
		t.Errorf("61 sizes, relaxed: %d types, %q", len(got), why)
	}
	if got, why := names(and(wanting(model.Spot), families(3))); got != nil || why == "" {
		t.Errorf("3 families: %d types, %q", len(got), why)
	}

	// The second family begins beyond the 60 cheapest.
	types = types[:0]
	for i := range 100 {
		types = append(types, machine(t, fmt.Sprintf("f%02d.s%02d", i/70, i), "", fmt.Sprintf("a:spot:%d", 1+i)))
	}
	got, why := names(and(wanting(model.Spot), families(2)))
	if len(got) != 60 || got[58] != "f00.s58" || got[59] != "f01.s70" || why != "" {
		t.Errorf("2 families: %v, %q", got, why)
	}
}

// spec 65/89.
func TestTenancy(t *testing.T) {
	key := awsv1.InstanceTenancyLabelKey
	for _, c := range []struct {
		demand []model.Requirement
		want   string
	}{
		{nil, "default"},
		{[]model.Requirement{model.NewRequirement(key, model.In, "dedicated", "default")}, "default"},
		{[]model.Requirement{model.NewRequirement(key, model.In, "dedicated")}, "dedicated"},
	} {
		if got := launch.Tenancy(and(wanting(model.Spot), c.demand...)); got != c.want {
			t.Errorf("%v: %s", c.demand, got)
		}
	}
	if got := launch.Partition(and(wanting(model.Spot), model.NewRequirement(awsv1.PlacementGroupPartitionLabelKey, model.In, "7", "10"))); got != "10" {
		t.Errorf("partition %q", got)
	}
	if got := launch.Partition(wanting(model.Spot)); got != "" {
		t.Errorf("partition %q", got)
	}
}

func TestSubnets(t *testing.T) {
	got := launch.Subnets([]launch.Subnet{
		{"subnet-1", "a", 10}, {"subnet-2", "a", 12}, {"subnet-3", "a", 12}, {"subnet-4", "b", 0},
	})
	want := map[string]launch.Subnet{"a": {"subnet-2", "a", 12}, "b": {"subnet-4", "b", 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
