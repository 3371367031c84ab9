// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

const region = "us-east-1"

// regrouped are types whose network cards EC2 has described otherwise since
// their figures were published: each of two or more cards has an equal part of
// the interfaces now.
func regrouped() []string {
	return []string{"i7ie.48xlarge", "i7ie.metal-48xl", "i8ge.48xlarge", "i8ge.metal-48xl"}
}

// world is what tests know of EC2.
type world struct {
	descriptions map[string]ec2.Description
	catalogue    map[string]ec2.Type
}

func newWorld(t testing.TB) *world {
	t.Helper()
	descriptions, err := ec2.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	types, err := ec2.Types()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{map[string]ec2.Description{}, map[string]ec2.Type{}}
	for _, d := range descriptions {
		w.descriptions[d.InstanceType] = d
	}
	for _, it := range types {
		w.catalogue[it.Name] = it
	}
	return w
}

// facts returns what is known of a type that is offered in zones a and b.
func (w *world) facts(t testing.TB, name string) *instancetype.Facts {
	t.Helper()
	description, ok := w.descriptions[name]
	if !ok {
		t.Fatalf("%s is not described", name)
	}
	facts := &instancetype.Facts{Description: description, Zones: []string{"us-east-1a", "us-east-1b"}}
	if it := w.catalogue[name]; true {
		facts.NetworkMbps = it.NetworkMbps
		if it.Trunking {
			facts.BranchENIs = it.BranchENIs
		}
	}
	return facts
}

// plain is a node class that sets nothing, with subnets in zones a and b.
func plain(family awsv1.AMIFamily) *instancetype.Class {
	return &instancetype.Class{
		Family: family,
		Zones:  []instancetype.Zone{{Name: "us-east-1a", ID: "use1-az1"}, {Name: "us-east-1b", ID: "use1-az2"}},
	}
}

func defaults() *instancetype.Cluster {
	return &instancetype.Cluster{Region: region, MemoryOverhead: 0.075}
}

func value(list corev1.ResourceList, name corev1.ResourceName) int64 {
	q := list[name]
	return q.Value()
}

// TestPublishedAllocatable compares what pods can use of each type, and what it
// has, with what is published for AL2023 nodes with default settings.
func TestPublishedAllocatable(t *testing.T) {
	w := newWorld(t)
	published, equal := 0, 0
	for _, it := range w.catalogue {
		if it.Allocatable == nil {
			continue
		}
		published++
		facts := w.facts(t, it.Name)
		if slices.Contains(regrouped(), it.Name) {
			facts.NetworkInfo.NetworkCards = cards(it)
		}
		if same(t, &it, instancetype.New(facts, plain(awsv1.AMIFamilyAL2023), defaults())) {
			equal++
		}
	}
	t.Logf("allocatable and capacity of %d of %d types are equal to the published ones", equal, published)
	if equal != 1363 || published != 1363 {
		t.Errorf("%d of %d equal", equal, published)
	}
}

// cards are the network cards of a type as the catalogue has them.
func cards(it ec2.Type) []ec2.NetworkCard {
	out := []ec2.NetworkCard{{MaximumNetworkInterfaces: it.ENIs}}
	for i, n := range it.CardENIs {
		out = append(out[:i], ec2.NetworkCard{NetworkCardIndex: i, MaximumNetworkInterfaces: n})
	}
	return out
}

// same reports whether all resources of a type are the published ones, to the
// byte. Published disks and memory are whole GiB and MiB.
func same(t *testing.T, it *ec2.Type, got *cloud.InstanceType) bool {
	want := corev1.ResourceList{}
	set := func(name corev1.ResourceName, n int64) { want[name] = *model64(n) }
	set(corev1.ResourceCPU, it.Capacity.CPU)
	set(corev1.ResourceMemory, it.Capacity.MemoryMiB<<20)
	set(corev1.ResourceEphemeralStorage, it.Capacity.EphemeralGiB<<30)
	set(corev1.ResourcePods, it.Capacity.Pods)
	for name, n := range it.Capacity.Extended {
		set(corev1.ResourceName(name), n)
	}
	ok := true
	for name := range got.Capacity {
		if have := value(got.Capacity, name); have != value(want, name) {
			t.Errorf("%s: capacity %s is %d, published %d", it.Name, name, have, value(want, name))
			ok = false
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s: capacity %s is not there", it.Name, name)
		ok = false
	}
	allocatable := got.Allocatable()
	cpu := allocatable[corev1.ResourceCPU]
	have := [3]int64{cpu.MilliValue(), value(allocatable, corev1.ResourceMemory), value(allocatable, corev1.ResourceEphemeralStorage)}
	if wanted := [3]int64{it.Allocatable.CPUMilli, it.Allocatable.MemoryMiB << 20, it.Allocatable.EphemeralGiB << 30}; have != wanted {
		t.Errorf("%s: allocatable %v, published %v", it.Name, have, wanted)
		ok = false
	}
	return ok
}

// TestPublishedLabels compares the labels that describe each type with the
// published ones. Clock speeds of 66 types have been corrected by EC2 since.
func TestPublishedLabels(t *testing.T) {
	w := newWorld(t)
	compared, clocks := 0, 0
	for _, it := range w.catalogue {
		if it.Allocatable == nil {
			continue
		}
		requirements := instancetype.New(w.facts(t, it.Name), plain(awsv1.AMIFamilyAL2023), defaults()).Requirements
		for key, want := range publishedLabels(&it) {
			got, ok := requirements.Value(key)
			switch {
			case got == want && ok == (want != "" || key == awsv1.InstanceHypervisorLabelKey):
				compared++
			case key == awsv1.InstanceCPUSustainedClockSpeedMHzLabelKey:
				clocks++
			default:
				t.Errorf("%s: %s is %q, published %q", it.Name, key, got, want)
			}
		}
	}
	for _, name := range []string{"c1.medium", "m1.small", "m2.4xlarge", "t1.micro", "i3.metal"} {
		requirements := instancetype.New(w.facts(t, name), plain(awsv1.AMIFamilyAL2023), defaults()).Requirements
		if got, ok := requirements.Value(awsv1.InstanceCPUSustainedClockSpeedMHzLabelKey); !ok || got != "0" {
			t.Errorf("%s: EC2 tells no clock speed, the label is %q, want 0", name, got)
		}
	}
	t.Logf("%d labels are equal to the published ones, %d clock speeds are not", compared, clocks)
	if clocks != 66 {
		t.Errorf("%d clock speeds differ", clocks)
	}
}

// TestDescriptions holds that the names of all described types can be read.
func TestDescriptions(t *testing.T) {
	w := newWorld(t)
	for name, d := range w.descriptions {
		it := instancetype.New(w.facts(t, name), plain(awsv1.AMIFamilyAL2023), defaults())
		for _, key := range []string{
			awsv1.InstanceCategoryLabelKey, awsv1.InstanceGenerationLabelKey, awsv1.InstanceFamilyLabelKey, awsv1.InstanceSizeLabelKey,
			model.LabelArch, model.LabelOS, awsv1.InstanceCPULabelKey, awsv1.InstanceMemoryLabelKey,
		} {
			if got, ok := it.Requirements.Value(key); !ok || got == "" {
				t.Errorf("%s: no %s", name, key)
			}
		}
		if d.SupportedUsageClasses == nil || value(it.Capacity, corev1.ResourcePods) == 0 || value(it.Allocatable(), corev1.ResourceMemory) == 0 {
			t.Errorf("%s: %v", name, it.Capacity)
		}
	}
}
