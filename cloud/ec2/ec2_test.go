// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/model"
)

func catalogueTypes(t *testing.T) []Type {
	t.Helper()
	types, err := Types()
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// The counts the catalogue was delivered with.
func TestCatalogue(t *testing.T) {
	types := catalogueTypes(t)
	if !sort.SliceIsSorted(types, func(i, j int) bool { return types[i].Name < types[j].Name }) {
		t.Error("not sorted by name")
	}
	got := map[string]int{}
	count := func(what string, is bool) {
		if is {
			got[what]++
		}
	}
	for _, it := range types {
		got["types"]++
		got["arch "+it.Arch]++
		for region := range it.OnDemand {
			got["priced in "+region]++
		}
		count("retired", it.Source != "")
		count("published allocatable", it.Allocatable != nil)
		count("flex", it.Flex)
		count("metal", it.Metal)
		count("interfaces known", it.ENIs > 0)
		count("gpu", it.GPU != nil)
		count("accelerator", it.Accelerator != nil)
		count("several cards", it.CardENIs != nil)
		count("nvidia.com/gpu", it.Capacity.Extended["nvidia.com/gpu"] > 0)
		count("pods", it.Capacity.Pods > 0)
		if it.Name != it.Family+"."+it.Size || it.Capacity.CPU != it.CPU || it.Capacity.MemoryMiB <= 0 || it.Capacity.MemoryMiB >= it.MemoryMiB {
			t.Errorf("%s: %+v", it.Name, it)
		}
	}
	want := map[string]int{
		"types": 1382, "arch amd64": 986, "arch arm64": 396, "retired": 19, "published allocatable": 1363, "flex": 35, "metal": got["metal"],
		"priced in us-east-1": 1364, "priced in us-gov-west-1": 767, "priced in us-gov-east-1": 549, "priced in cn-north-1": 316,
		"interfaces known": 1363, "gpu": 81, "accelerator": 13, "several cards": 60, "nvidia.com/gpu": 70, "pods": 1382,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// All types of the catalogue are described but those that doc.go names.
func TestDescriptions(t *testing.T) {
	descriptions, err := Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	if !sort.SliceIsSorted(descriptions, func(i, j int) bool { return descriptions[i].InstanceType < descriptions[j].InstanceType }) {
		t.Error("not sorted by name")
	}
	described := map[string]bool{}
	for _, d := range descriptions {
		described[d.InstanceType] = true
		if d.VCpuInfo.DefaultVCpus == 0 || d.MemoryInfo.SizeInMiB == 0 || d.NetworkInfo.Ipv4AddressesPerInterface == 0 ||
			len(d.NetworkInfo.NetworkCards) == 0 || len(d.SupportedUsageClasses) == 0 || d.EbsInfo.EbsOptimizedSupport == "" ||
			len(d.PlacementGroupInfo.SupportedStrategies) == 0 || d.BareMetal != (d.Hypervisor == "") {
			t.Errorf("%+v", d)
		}
	}
	var missing []string
	for _, it := range catalogueTypes(t) {
		if !described[it.Name] {
			missing = append(missing, it.Name)
		}
	}
	want := []string{
		"g3.16xlarge", "g3.4xlarge", "g3.8xlarge", "g3s.xlarge", "p2.16xlarge", "p2.8xlarge", "p2.xlarge",
		"u-12tb1.112xlarge", "u-18tb1.112xlarge", "u-24tb1.112xlarge", "u-9tb1.112xlarge",
	}
	if diff := cmp.Diff(want, missing); diff != "" || len(described) != 1399 {
		t.Errorf("%d described; not described: %s", len(described), diff)
	}
}

// What is published as allocatable follows from the capacity.
func TestReserved(t *testing.T) {
	compared := 0
	for _, it := range catalogueTypes(t) {
		if it.Allocatable == nil {
			continue
		}
		r := it.Capacity.Reserved()
		got := Allocatable{it.CPU*1000 - r.CPUMilli, it.Capacity.MemoryMiB - r.MemoryMiB, it.Capacity.EphemeralGiB - r.EphemeralGiB}
		if got != *it.Allocatable {
			t.Errorf("%s: allocatable %+v, published %+v", it.Name, got, *it.Allocatable)
		}
		compared++
	}
	if compared != 1363 {
		t.Errorf("compared %d types", compared)
	}
	for cpus, want := range map[int64]int64{1: 60, 2: 70, 4: 80, 8: 90, 16: 110, 48: 190, 96: 310, 128: 390} {
		if got := reservedCPU(cpus); got != want {
			t.Errorf("%d cpus: %dm reserved, want %dm", cpus, got, want)
		}
	}
}

func sandbox(t *testing.T) []*cloud.InstanceType {
	t.Helper()
	entries, err := KWOKTypes("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := kwok.WriteEntries(&file, entries); err != nil {
		t.Fatal(err)
	}
	c, err := kwok.ParseCatalogue(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return c.Types()
}

func TestKWOKTypes(t *testing.T) {
	facts := map[string]Type{}
	for _, it := range catalogueTypes(t) {
		facts[it.Name] = it
	}
	types := sandbox(t)
	if len(types) != 1364 {
		t.Errorf("%d types, want 1364", len(types))
	}
	for _, it := range types {
		fact := facts[it.Name]
		if fact.Allocatable != nil {
			allocatable := it.Allocatable()
			cpu, memory, disk := allocatable[corev1.ResourceCPU], allocatable[corev1.ResourceMemory], allocatable[corev1.ResourceEphemeralStorage]
			got := Allocatable{cpu.MilliValue(), memory.Value() >> 20, disk.Value() >> 30}
			if got != *fact.Allocatable {
				t.Errorf("%s: allocatable %+v, published %+v", it.Name, got, *fact.Allocatable)
			}
		}
		onDemand, spots := fact.OnDemand["us-east-1"], map[model.Price]bool{}
		for i := range it.Offerings {
			o := &it.Offerings[i]
			share := o.Price.Dollars() / onDemand
			switch o.CapacityType() {
			case model.OnDemand:
				if math.Abs(o.Price.Dollars()-onDemand) > 1e-9 {
					t.Errorf("%s: on demand for %v, want %v", it.Name, o.Price.Dollars(), onDemand)
				}
			case model.Spot:
				rounding := 0.5e-4 / onDemand
				if share < 1-maxDiscount-rounding || share > 1-minDiscount+rounding {
					t.Errorf("%s: spot at %.3f of on demand", it.Name, share)
				}
				spots[o.Price] = true
			}
		}
		if len(it.Offerings) != 6 || (onDemand > 1 && len(spots) < 2) {
			t.Errorf("%s: %d offerings, spot prices %v", it.Name, len(it.Offerings), spots)
		}
	}
}

func TestKWOKTypesLabels(t *testing.T) {
	want := map[string]map[string]string{
		"m5.large": {
			"category": "m", "generation": "5", "family": "m5", "size": "large", "cpu": "2", "memory": "8192", "hypervisor": "nitro",
			"cpu-manufacturer": "intel", "cpu-sustained-clock-speed-mhz": "3100", "capability-flex": "false",
			"network-bandwidth": "750", "ebs-bandwidth": "4750", "encryption-in-transit-supported": "false",
		},
		"p5.48xlarge": {
			"category": "p", "generation": "5", "family": "p5", "size": "48xlarge", "cpu": "192", "memory": "2097152", "hypervisor": "nitro",
			"cpu-manufacturer": "amd", "cpu-sustained-clock-speed-mhz": "3600", "capability-flex": "false",
			"network-bandwidth": "3200000", "ebs-bandwidth": "80000", "encryption-in-transit-supported": "true", "local-nvme": "30400",
			"gpu-name": "h100", "gpu-manufacturer": "nvidia", "gpu-count": "8", "gpu-memory": "81920",
		},
	}
	for _, it := range sandbox(t) {
		for _, r := range it.Requirements {
			if strings.HasPrefix(r.Key, LabelDomain) && r.Operator() != model.In && r.Operator() != model.DoesNotExist {
				t.Errorf("%s: %s", it.Name, r)
			}
		}
		if want[it.Name] == nil {
			continue
		}
		got := map[string]string{}
		for _, r := range it.Requirements {
			if value, ok := it.Requirements.Value(r.Key); ok && strings.HasPrefix(r.Key, LabelDomain) {
				got[strings.TrimPrefix(r.Key, LabelDomain+"/instance-")] = value
			}
		}
		if diff := cmp.Diff(want[it.Name], got); diff != "" {
			t.Errorf("%s: %s", it.Name, diff)
		}
		delete(want, it.Name)
	}
	if len(want) > 0 {
		t.Errorf("types not there: %v", want)
	}
}

// The requirements of NodePools written for AWS choose among the simulated
// types.
func TestKWOKTypesProductionPool(t *testing.T) {
	label := func(name string) string { return LabelDomain + "/" + name }
	var got []string
	for c := range cloud.Choices(sandbox(t), model.NewRequirements(
		model.NewRequirement(label("instance-category"), model.In, "c", "m", "r"),
		model.NewRequirement(label("instance-generation"), model.Gt, "2"),
		model.NewRequirement(label("instance-gpu-count"), model.DoesNotExist),
		model.NewRequirement(label("instance-size"), model.NotIn, "metal", "medium"),
		model.NewRequirement(label("instance-local-nvme"), model.Gte, "100"),
		model.NewRequirement(model.LabelArch, model.In, "amd64"),
		model.NewRequirement(model.LabelCapacityType, model.In, model.OnDemand),
		model.NewRequirement(model.LabelZone, model.In, "us-east-1b"),
	), nil) {
		got = append(got, c.Type.Name)
		if f := c.Type.Name[0]; f != 'c' && f != 'm' && f != 'r' {
			t.Errorf("%s is not of the categories", c.Type.Name)
		}
	}
	if len(got) < 50 || !slices.Contains(got, "m5d.xlarge") || slices.Contains(got, "m5.large") || slices.Contains(got, "m6gd.large") {
		t.Errorf("%d types: %v", len(got), got)
	}
}

func TestKWOKTypesRegion(t *testing.T) {
	if _, err := KWOKTypes("mars-1"); err == nil || !strings.Contains(err.Error(), "cn-north-1, us-east-1, us-gov-east-1, us-gov-west-1") {
		t.Errorf("unknown region: %v", err)
	}
	a, err := KWOKTypes("us-gov-west-1")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := KWOKTypes("us-gov-west-1")
	if diff := cmp.Diff(a, b); diff != "" || len(a) != 767 {
		t.Errorf("%d types; between two calls: %s", len(a), diff)
	}
}

func BenchmarkSandboxTypes(b *testing.B) {
	for b.Loop() {
		entries, err := KWOKTypes("us-east-1")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := kwok.NewCatalogue(entries); err != nil {
			b.Fatal(err)
		}
	}
}

// A launch from a claim that leaves every type open.
func BenchmarkChoices(b *testing.B) {
	entries, err := KWOKTypes("us-east-1")
	if err != nil {
		b.Fatal(err)
	}
	c, err := kwok.NewCatalogue(entries)
	if err != nil {
		b.Fatal(err)
	}
	types, linux := c.Types(), model.NewRequirements(model.NewRequirement(model.LabelOS, model.In, "linux"))
	for b.Loop() {
		for range cloud.Choices(types, linux, nil) { // only the best
			break
		}
	}
}
