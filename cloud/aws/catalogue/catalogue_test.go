// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	facts "karpenter/cloud/ec2"
	"karpenter/model"
)

// EC2's answers are read as they were recorded.
func TestDescribe(t *testing.T) {
	descriptions, err := facts.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	for i := range descriptions {
		in := answer(t, &descriptions[i])
		if diff := cmp.Diff(descriptions[i], catalogue.Describe(&in)); diff != "" {
			t.Fatalf("%s: %s", descriptions[i].InstanceType, diff)
		}
	}
}

func TestRefresh(t *testing.T) {
	w := newWorld(t, newRegion(t))
	types := w.types(t, plain())
	if len(types) != len(w.region.types) || w.region.asked["DescribeInstanceTypes"] != 14 || w.region.asked["DescribeInstanceTypeOfferings"] != 5 {
		t.Errorf("%d types in %v pages", len(types), w.region.asked)
	}
	if got := available(types["m5.large"]); got != "a od 0.096, a spot 0.096, b od 0.096, b spot 0.096" {
		t.Error(got)
	}
	if eni := types["m5.large"].Capacity["vpc.amazonaws.com/pod-eni"]; eni.Value() != 9 {
		t.Errorf("%v branch interfaces", eni.Value())
	}
	it, err := w.Type(t.Context(), plain(), "m5.large")
	if err != nil || it != types["m5.large"] {
		t.Errorf("%v, %v", it, err)
	}
	if _, err := w.Type(t.Context(), plain(), "m5.huge"); err == nil || !strings.Contains(err.Error(), "instance type m5.huge not found in cache") {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large"))
	class := plain()
	class.Status.Subnets = nil
	for name, c := range map[string]struct {
		w     *world
		class *awsv1.EC2NodeClass
	}{
		"no subnets found":                  {w, class},
		"no instance types found":           {newWorld(t, newRegion(t, "none")), plain()},
		"no instance types offerings found": {newWorld(t, func() *region { r := newRegion(t, "m5.large"); r.sold = nil; return r }()), plain()},
	} {
		if _, err := c.w.Types(t.Context(), c.class); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An answer of which the last page is missing changes nothing.
func TestIncompleteInstanceTypesAreIgnored(t *testing.T) {
	w := newWorld(t, newRegion(t))
	before := w.types(t, plain())
	for _, call := range []string{"DescribeInstanceTypes", "DescribeInstanceTypeOfferings"} {
		w.region.fails = map[string]error{call: errors.New("throttled")}
		if err := w.Refresh(t.Context()); err == nil {
			t.Errorf("%s: no error", call)
		}
	}
	if diff := changed(before, w.types(t, plain())); diff != nil {
		t.Error(diff)
	}
}

// changed returns the names of types that are not the very same, sorted.
func changed(before, after map[string]*cloud.InstanceType) []string {
	var out []string
	for name, it := range after {
		if before[name] != it {
			out = append(out, name)
		}
	}
	for name := range before {
		if after[name] == nil {
			out = append(out, "-"+name)
		}
	}
	slices.Sort(out)
	return out
}

// step is a change, and whose types it makes again.
type step struct {
	name   string
	change func(*world, *awsv1.EC2NodeClass)
	anew   []string
	offers string // available offerings of m5.large then; "" = not checked
}

// run takes the steps; an unchanged answer must be the same slice.
func run(t *testing.T, w *world, class *awsv1.EC2NodeClass, steps []step) {
	t.Helper()
	before := w.types(t, class)
	for _, s := range steps {
		s.change(w, class)
		list, err := w.Types(t.Context(), class)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		again, _ := w.Types(t.Context(), class.DeepCopy())
		if &list[0] != &again[0] {
			t.Errorf("%s: another slice the second time", s.name)
		}
		after := w.types(t, class)
		if diff := cmp.Diff(s.anew, changed(before, after)); diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
		if got := available(after["m5.large"]); s.offers != "" && got != s.offers {
			t.Errorf("%s: %s", s.name, got)
		}
		before = after
	}
}

// Types that a change does not concern stay the very same.
func TestIdentity(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "c5.large", "m6g.large"))
	all := []string{"c5.large", "m5.large", "m6g.large"}
	sellsAll := "a od 0.096, a spot 0.096, b od 0.096, b spot 0.096"
	short := func(w *world, o shortage.Offering) { w.shortages.Offering(o, w.clock.Now()) }
	run(t, w, plain(), []step{
		{"nothing", func(*world, *awsv1.EC2NodeClass) {}, nil, sellsAll},
		{"subnets in another order", func(_ *world, c *awsv1.EC2NodeClass) { slices.Reverse(c.Status.Subnets) }, nil, ""},
		{"a new generation with nothing for types", func(_ *world, c *awsv1.EC2NodeClass) { c.Generation++; c.Spec.Tags = map[string]string{"a": "b"} }, nil, ""},
		{"spec 65/65 spec 65/62 one type is sold out", func(w *world, _ *awsv1.EC2NodeClass) {
			short(w, shortage.Offering{CapacityType: model.Spot, InstanceType: "m5.large", Zone: "us-east-1a"})
		}, []string{"m5.large"}, "a od 0.096, b od 0.096, b spot 0.096"},
		{"found so again", func(w *world, _ *awsv1.EC2NodeClass) {
			w.later(time.Minute)
			short(w, shortage.Offering{CapacityType: model.Spot, InstanceType: "m5.large", Zone: "us-east-1a"})
		}, nil, ""},
		{"spec 65/62 that is over", func(w *world, _ *awsv1.EC2NodeClass) { w.later(shortage.Lasting) }, []string{"m5.large"}, sellsAll},
		{"spec 65/65 a capacity type", func(w *world, _ *awsv1.EC2NodeClass) { w.shortages.CapacityType(model.Spot, w.clock.Now()) }, all, "a od 0.096, b od 0.096"},
		{"and over", func(w *world, _ *awsv1.EC2NodeClass) { w.later(shortage.Lasting) }, all, sellsAll},
		{"spec 65/63 one of two subnets of a zone", func(w *world, _ *awsv1.EC2NodeClass) { w.shortages.Subnet("subnet-1", w.clock.Now()) }, nil, ""},
		{"spec 65/63 both", func(w *world, _ *awsv1.EC2NodeClass) { w.shortages.Subnet("subnet-3", w.clock.Now()) }, all, "b od 0.096, b spot 0.096"},
		{"and open", func(w *world, _ *awsv1.EC2NodeClass) { w.later(shortage.Lasting) }, all, sellsAll},
		{"spec 65/68 a zone is shifted", func(w *world, _ *awsv1.EC2NodeClass) { w.shifted["use1-az2"] = true }, all, "a od 0.096, a spot 0.096"},
		{"and back", func(w *world, _ *awsv1.EC2NodeClass) { delete(w.shifted, "use1-az2") }, all, sellsAll},
		{"a subnet in a third zone", func(_ *world, c *awsv1.EC2NodeClass) {
			c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: "subnet-4", Zone: "us-east-1c", ZoneID: "use1-az4"})
		}, all, sellsAll + ", c od 0.096, c spot 0.096"},
		{"EC2 says the same", func(w *world, _ *awsv1.EC2NodeClass) { _ = w.Refresh(t.Context()) }, nil, ""},
		{"a type is sold in fewer zones", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.sold["m5.large"] = zones()[:2]
			_ = w.Refresh(t.Context())
		}, []string{"m5.large"}, sellsAll},
		{"a type is gone", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.types = slices.DeleteFunc(w.region.types, func(i ec2types.InstanceTypeInfo) bool { return i.InstanceType == "c5.large" })
			_ = w.Refresh(t.Context())
		}, []string{"-c5.large"}, ""},
	})
}

// spec 65/70: what is left in reservations is looked at in each call.
func TestReservations(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "c5.large"))
	class := plain()
	class.Status.CapacityReservations = []awsv1.CapacityReservation{
		{ID: "cr-1", InstanceType: "m5.large", AvailabilityZone: "us-east-1a"}, {ID: "cr-2", InstanceType: "c5.large", AvailabilityZone: "us-east-1a"},
		{ID: "cr-3", InstanceType: "m5.large", AvailabilityZone: "us-east-1c"},
	}
	w.region.spot = map[string]map[string]string{"t3.nano": {"us-east-1a": "1"}} // spot is sold nowhere else
	if err := w.RefreshPrices(t.Context()); err == nil {
		t.Error("no error for a price list without prices")
	}
	const open = "a od 0.096, b od 0.096"
	run(t, w, class, []step{
		{"empty", func(*world, *awsv1.EC2NodeClass) {}, nil, open},
		{"filled", func(w *world, _ *awsv1.EC2NodeClass) { w.left["cr-1"] = 2 }, []string{"m5.large"}, open + ", a reserved cr-1×2"},
		{"one less", func(w *world, _ *awsv1.EC2NodeClass) { w.left["cr-1"] = 1 }, []string{"m5.large"}, open + ", a reserved cr-1×1"},
		{"a zone without a subnet", func(w *world, _ *awsv1.EC2NodeClass) { w.left["cr-3"] = 5 }, []string{"m5.large"}, open + ", a reserved cr-1×1"},
		{"of the other type", func(w *world, _ *awsv1.EC2NodeClass) { w.left["cr-2"] = 5 }, []string{"c5.large"}, ""},
		{"expiring", func(_ *world, c *awsv1.EC2NodeClass) {
			c.Status.CapacityReservations[0].State = awsv1.CapacityReservationStateExpiring
		}, []string{"m5.large"}, open},
		{"not selected any more", func(_ *world, c *awsv1.EC2NodeClass) { c.Status.CapacityReservations = nil }, []string{"c5.large", "m5.large"}, open},
	})
}

// Without the gate ReservedCapacity there are no reservations.
func TestNoReservations(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large"), func(c *catalogue.Config) { c.Left = nil })
	class := plain()
	class.Status.CapacityReservations = []awsv1.CapacityReservation{{ID: "cr-1", InstanceType: "m5.large", AvailabilityZone: "us-east-1a"}}
	it := w.types(t, class)["m5.large"]
	if r, _ := it.Requirements.Get(model.LabelCapacityType); r.Has(model.Reserved) || strings.Contains(available(it), "cr-1") {
		t.Errorf("%s, %s", r, available(it))
	}
}

// spec 65/50: nodes that have less memory than was thought.
func TestMemory(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "m6g.large"))
	class := plain()
	arm := []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}
	amd := []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}}
	class.Status.AMIs = []awsv1.AMI{{ID: "ami-arm", Requirements: arm}, {ID: "ami-1", Requirements: amd}}
	const mi = int64(1) << 20
	estimate := memory(w.types(t, class)["m5.large"])
	for _, s := range []struct {
		name   string
		change func()
		want   int64
	}{
		{"not seen", func() {}, estimate},
		{"less", func() { w.memory.Saw("m5.large", "ami-1", 7400*mi, w.clock.Now()) }, 7400 * mi},
		{"more is not believed", func() { w.memory.Saw("m5.large", "ami-1", 7500*mi, w.clock.Now()) }, 7400 * mi},
		{"less again", func() { w.memory.Saw("m5.large", "ami-1", 7300*mi, w.clock.Now()) }, 7300 * mi},
		{"with an image that is not current", func() { w.memory.Saw("m5.large", "ami-0", 7000*mi, w.clock.Now()) }, 7300 * mi},
		{"another image for the other architecture", func() { class.Status.AMIs[0].ID = "ami-arm2" }, 7300 * mi},
		{"another image", func() { class.Status.AMIs[1].ID = "ami-2" }, estimate},
		{"the first image again, long after", func() { class.Status.AMIs[1].ID = "ami-1"; w.later(61 * 24 * time.Hour) }, estimate},
	} {
		s.change()
		if got := memory(w.types(t, class)["m5.large"]); got != s.want {
			t.Errorf("%s: %d, want %d", s.name, got, s.want)
		}
	}
	before := w.types(t, class)
	w.memory.Saw("m6g.large", "ami-arm2", 7000*mi, w.clock.Now())
	if diff := cmp.Diff([]string{"m6g.large"}, changed(before, w.types(t, class))); diff != "" {
		t.Error(diff)
	}
}

func memory(it *cloud.InstanceType) int64 { q := it.Capacity[corev1.ResourceMemory]; return q.Value() }

// Expressions are worked out for each type; wrong ones leave the defaults.
func TestFormulas(t *testing.T) {
	language, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	withGate := newWorld(t, newRegion(t, "m5.large", "m5.xlarge"), func(c *catalogue.Config) { c.Formulas = language })
	without := newWorld(t, newRegion(t, "m5.large", "m5.xlarge"))
	for text, want := range map[string][2]int64{
		`"vcpus * 10"`: {20, 40}, `"vcpus +"`: {29, 58}, `"100 / (vcpus - vcpus)"`: {29, 58}, `7`: {7, 7},
	} {
		class := plain()
		class.Spec.Kubelet = awsv1.KubeletConfiguration{"maxPods": apiextensionsv1.JSON{Raw: []byte(text)}}
		types := withGate.types(t, class)
		if got := [2]int64{pods(types["m5.large"]), pods(types["m5.xlarge"])}; got != want {
			t.Errorf("maxPods %s: %v, want %v", text, got, want)
		}
		if got := pods(without.types(t, class)["m5.large"]); text != "7" && got != 29 {
			t.Errorf("maxPods %s without the gate: %d", text, got)
		}
	}
}

func pods(it *cloud.InstanceType) int64 { q := it.Capacity[corev1.ResourcePods]; return q.Value() }

// A placement group limits what is available, and can be out of capacity on its
// own.
func TestPlacementGroup(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "t3.large"))
	w.group = &instancetype.PlacementGroup{ID: "pg-1", Strategy: "cluster"}
	types := w.types(t, plain())
	if available(types["m5.large"]) == "" || available(types["t3.large"]) != "" {
		t.Errorf("m5.large %q, t3.large %q", available(types["m5.large"]), available(types["t3.large"]))
	}
	w.shortages.Offering(shortage.Offering{CapacityType: model.Spot, InstanceType: "m5.large", Zone: "us-east-1a", Group: "pg-1"}, w.clock.Now())
	w.shortages.Offering(shortage.Offering{CapacityType: model.OnDemand, InstanceType: "m5.large", Zone: "us-east-1a", Group: "pg-2"}, w.clock.Now())
	if got := available(w.types(t, plain())["m5.large"]); got != "a od 0.096, b od 0.096, b spot 0.096" {
		t.Error(got)
	}
	w.noGroup = errors.New("no such group")
	if _, err := w.Types(t.Context(), plain()); !errors.Is(err, w.noGroup) {
		t.Error(err)
	}
	w.group, w.noGroup = nil, nil
	if got := available(w.types(t, plain())["m5.large"]); got != "a od 0.096, a spot 0.096, b od 0.096, b spot 0.096" {
		t.Error(got)
	}
}

// Classes have views of their own.
func TestTwoClasses(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large"))
	other := plain()
	other.Name, other.UID = "other", "uid2"
	other.Status.Subnets = other.Status.Subnets[1:2]
	got := map[string]string{"default": available(w.types(t, plain())["m5.large"]), "other": available(w.types(t, other)["m5.large"])}
	if diff := cmp.Diff(map[string]string{"default": "a od 0.096, a spot 0.096, b od 0.096, b spot 0.096", "other": "b od 0.096, b spot 0.096"}, got); diff != "" {
		t.Error(diff)
	}
	first := w.types(t, plain())
	w.types(t, other)
	if diff := changed(first, w.types(t, plain())); len(diff) > 0 {
		t.Error(slices.Collect(maps.Keys(first)), diff)
	}
}

// How GPUs are shared in one class does not appear in the types of another. spec 48/93.
func TestTwoClassesShareGPUs(t *testing.T) {
	w := newWorld(t, newRegion(t, "g4dn.xlarge"))
	shared, exclusive := plain(), plain()
	shared.Annotations = map[string]string{awsv1.ConsumableCapacityAnnotationKey: "4"}
	exclusive.Name, exclusive.UID = "exclusive", "uid2"
	shares := func(class *awsv1.EC2NodeClass) bool {
		of := w.types(t, class)["g4dn.xlarge"].DevicePools[0].Devices[0]
		_, has := of.Capacity["shares"]
		return has && of.AllowMultipleAllocations != nil && *of.AllowMultipleAllocations
	}
	for range 2 {
		if got := shares(shared); !got {
			t.Error("the class with the annotation has exclusive GPUs")
		}
		if got := shares(exclusive); got {
			t.Error("the class without the annotation has shared GPUs")
		}
	}
}
