// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// The generator's rules of spec 50 §9.4, checked against numbers worked out
// by hand.
func TestDefaultCatalogue(t *testing.T) {
	c, err := ReadCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*cloud.InstanceType{}
	for _, it := range c.Types() {
		types[it.Name] = it
	}
	if len(types) != 144 {
		t.Errorf("%d types, want 144", len(types))
	}
	for _, tc := range []struct {
		name, os, arch, memory, pods string
		onDemand, spot               model.Price
	}{
		// 0.025 + 0.001×2.147483648; 70 % of it
		{"c-1x-amd64-linux", "linux", "amd64", "2Gi", "16", 27_147_484, 19_003_239},
		{"s-48x-arm64-windows", "windows", "arm64", "192Gi", "768", 1_406_158_430, 984_310_901},
		// 0.025×256 + 0.001×2199.023255552
		{"m-256x-arm64-linux", "linux", "arm64", "2Ti", "1024", 8_599_023_256, 6_019_316_279},
	} {
		it := types[tc.name]
		if it == nil {
			t.Errorf("no type %s", tc.name)
			continue
		}
		for key, want := range map[string]string{corev1.LabelOSStable: tc.os, corev1.LabelArchStable: tc.arch} {
			if got, _ := it.Requirements.Value(key); got != want {
				t.Errorf("%s: %s is %q, want %q", tc.name, key, got, want)
			}
		}
		for name, want := range map[corev1.ResourceName]string{"memory": tc.memory, "pods": tc.pods, "ephemeral-storage": "20Gi"} {
			if q := it.Capacity[name]; q.String() != want {
				t.Errorf("%s: %s is %s, want %s", tc.name, name, q.String(), want)
			}
		}
		var zones []string
		for i := range it.Offerings {
			o := &it.Offerings[i]
			want := tc.onDemand
			if o.CapacityType() == "spot" {
				want, zones = tc.spot, append(zones, o.Zone())
			}
			if o.Price != want || !o.Available {
				t.Errorf("%s: %s in %s for %d, available %v; want %d", tc.name, o.CapacityType(), o.Zone(), o.Price, o.Available, want)
			}
		}
		if diff := cmp.Diff([]string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"}, zones); diff != "" || len(it.Offerings) != 8 {
			t.Errorf("%s: %d offerings, zones: %s", tc.name, len(it.Offerings), diff)
		}
	}
}

func TestCatalogueLabels(t *testing.T) {
	c, err := NewCatalogue(DefaultEntries())
	if err != nil {
		t.Fatal(err)
	}
	labels := v1.DefaultLabels().With(c.Labels())
	want := v1.DefaultLabels().WellKnown.Insert(
		"karpenter.kwok.sh/instance-cpu", "karpenter.kwok.sh/instance-family",
		"karpenter.kwok.sh/instance-memory", "karpenter.kwok.sh/instance-size")
	if diff := cmp.Diff(want, labels.WellKnown); diff != "" {
		t.Errorf("well-known labels: %s", diff)
	}
	for key, allowed := range map[string]bool{"karpenter.kwok.sh/instance-cpu": true, "karpenter.kwok.sh/other": false, "a.karpenter.kwok.sh/b": false} {
		if err := labels.CheckRestricted(key); (err == nil) != allowed {
			t.Errorf("%s: %v", key, err)
		}
	}
}

const twoTypes = `[
  {
    "name": "m5.large",
    "offerings": [
      {"Price": 0.096, "Available": false, "Requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]},
        {"key": "example.com/rack", "operator": "In", "values": ["r1"]}]}
    ],
    "architecture": "amd64",
    "operatingSystems": ["linux", "windows"],
    "resources": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"},
    "somethingNew": true
  },
  {
    "name": "big",
    "offerings": [
      {"price": 1, "requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}],
       "launchError": "InsufficientCapacity"}
    ],
    "architecture": "arm64",
    "operatingSystems": ["linux"],
    "requirements": [
      {"key": "example.com/gpu", "operator": "DoesNotExist"},
      {"key": "example.com/tier", "operator": "In", "values": ["gold"]}],
    "resources": {"cpu": "64", "memory": "512Gi", "pods": "50"},
    "overhead": {"cpu": "1", "memory": "2Gi"}
  }
]`

// spec 50/20: a file replaces the list; names like EC2's give size and family.
func TestReadCatalogue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(path, []byte(twoTypes), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := ReadCatalogue(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ labels, allocatable map[string]string }{
		{
			labels: map[string]string{
				corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: "us-east-1a", model.LabelCapacityType: "on-demand", "example.com/rack": "r1",
				kwokv1alpha1.InstanceSizeLabelKey: "large", kwokv1alpha1.InstanceFamilyLabelKey: "m5",
				kwokv1alpha1.InstanceCPULabelKey: "2", kwokv1alpha1.InstanceMemoryLabelKey: "8Gi",
			},
			allocatable: map[string]string{"cpu": "1900m", "memory": "8182Mi", "pods": "110", "nvidia.com/gpu": "1"},
		},
		{
			labels: map[string]string{
				corev1.LabelInstanceTypeStable: "big", corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux",
				corev1.LabelTopologyZone: "us-east-1a", model.LabelCapacityType: "spot", "example.com/tier": "gold",
				kwokv1alpha1.InstanceSizeLabelKey: "64", kwokv1alpha1.InstanceFamilyLabelKey: "b",
				kwokv1alpha1.InstanceCPULabelKey: "64", kwokv1alpha1.InstanceMemoryLabelKey: "512Gi",
			},
			allocatable: map[string]string{"cpu": "63", "memory": "510Gi", "pods": "50"},
		},
	} {
		it := c.Types()[i]
		labels, allocatable := map[string]string{}, map[string]string{}
		for _, r := range it.Requirements {
			if value, ok := it.Requirements.Value(r.Key); ok {
				labels[r.Key] = value
			}
		}
		for name, q := range it.Allocatable() {
			allocatable[string(name)] = q.String()
		}
		if diff := cmp.Diff(want.labels, labels); diff != "" {
			t.Errorf("%s: labels: %s", it.Name, diff)
		}
		if diff := cmp.Diff(want.allocatable, allocatable); diff != "" {
			t.Errorf("%s: allocatable: %s", it.Name, diff)
		}
		if !it.Offerings[0].Available {
			t.Errorf("%s: an offering of a file is available", it.Name)
		}
	}
	if r, ok := c.Types()[1].Requirements.Get("example.com/gpu"); !ok || r.Operator() != model.DoesNotExist {
		t.Errorf("absent label: %v", r)
	}
	for _, key := range []string{"example.com/gpu", "example.com/rack", "example.com/tier"} {
		if !c.Labels().WellKnown.Has(key) {
			t.Errorf("%s is not well-known", key)
		}
	}
}

func TestReadCatalogueFaults(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{"syntax", `"offerings": [`, `"offerings": {`, "line "},
		{"wrong kind", `"price": 1`, `"price": "one"`, "line 18: "},
		{"quantity", `"512Gi"`, `"lots"`, "quantities must match"},
		{"no name", `"big"`, `""`, `entry 1 (""): name: missing`},
		{"bad name", `"big"`, `"a b"`, `entry 1 ("a b"): name: `},
		{"bad family", `"big"`, `"a_.b"`, `entry 1 ("a_.b"): name: size or family: `},
		{"same name", `"big"`, `"m5.large"`, `entry 1 ("m5.large"): name: also the name of entry 0`},
		{"no price", `"price": 1,`, ``, `entry 1 ("big"): offerings[0].price: missing`},
		{"negative price", `"price": 1`, `"price": -1`, `offerings[0].price: -1 is not a price`},
		{"huge price", `"price": 1`, `"price": 1e99`, `is not a price`},
		{"no zone", `"key": "topology.kubernetes.io/zone"`, `"key": "example.com/zone"`, `offerings[0].requirements: topology.kubernetes.io/zone must have one value`},
		{"capacity type", `["spot"]`, `["sport"]`, `capacity type "sport" is none of on-demand, spot, reserved`},
		{"operator", `"operator": "In", "values": ["gold"]`, `"operator": "Exists"`, `requirements[1]: must be In with values or DoesNotExist without`},
		{"derived label", `example.com/tier`, `kubernetes.io/arch`, `requirements[1].key: kubernetes.io/arch follows from other fields`},
		{"key twice", `example.com/tier`, `example.com/gpu`, `requirements[1].key: example.com/gpu is there twice`},
		{"bad key", `example.com/tier`, `a b`, `requirements[1].key: "a b"`},
		{"bad value", `"gold"`, `"a b"`, `requirements[1].values: "a b"`},
		{"architecture", `"arm64"`, `"x86_64"`, `entry 1 ("big"): architecture: "x86_64" is neither amd64 nor arm64`},
		{"operating system", `["linux"]`, `["plan9"]`, `operatingSystems[0]: "plan9" is neither`},
		{"no operating system", `["linux"]`, `[]`, `operatingSystems: missing`},
		{"no memory", `"memory": "512Gi", `, ``, `resources.memory: missing or not positive`},
		{"negative pods", `"pods": "50"`, `"pods": "-50"`, `resources.pods: negative`},
		{"negative overhead", `"overhead": {"cpu": "1"`, `"overhead": {"cpu": "-1"`, `overhead.cpu: negative`},
		{"resource name", `"pods": "50"`, `"a b": "50"`, `resources.a b: `},
		{"launch error", `"launchError": "InsufficientCapacity"`, `"launchError": "Boom"`, `offerings[0].launchError: "Boom" is not InsufficientCapacity`},
		{"reservation", `"launchError": "InsufficientCapacity"`, `"reservationCapacity": -1`, `offerings[0].reservationCapacity: negative`},
		{"nothing", twoTypes, `[]`, `no instance types`},
	} {
		text := strings.Replace(twoTypes, tc.old, tc.new, 1)
		if i := strings.LastIndex(twoTypes, tc.old); i > 0 { // the second entry's, where both have it
			text = twoTypes[:i] + strings.Replace(twoTypes[i:], tc.old, tc.new, 1)
		}
		path := filepath.Join(t.TempDir(), "types.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadCatalogue(path)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: catalogue %v, error %v; want %q in %s", tc.name, c, err, tc.want, path)
		}
	}
	if _, err := ReadCatalogue(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// Every fault is reported, not only the first.
func TestCatalogueReportsAllFaults(t *testing.T) {
	text := strings.NewReplacer(`"amd64"`, `"x"`, `"arm64"`, `"y"`, `"price": 1`, `"price": -1`).Replace(twoTypes)
	_, err := ParseCatalogue([]byte(text))
	for _, want := range []string{`entry 0 ("m5.large"): architecture: "x"`, `architecture: "y"`, `price: -1`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// The default types survive being written to a file and read again.
func TestEntriesRoundTrip(t *testing.T) {
	var file bytes.Buffer
	if err := WriteEntries(&file, DefaultEntries()); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(file.String(), "\n"); lines != 146 {
		t.Errorf("%d lines, want one per type and two brackets", lines)
	}
	read, err := ParseCatalogue(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	direct, err := NewCatalogue(DefaultEntries())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(direct.Types(), read.Types()); diff != "" {
		t.Error(diff)
	}
}

// Whatever is accepted can be sold: prices are not negative, labels valid,
// and what is allocatable is within capacity.
func FuzzParseCatalogue(f *testing.F) {
	f.Add([]byte(twoTypes))
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"name":"a","architecture":"arm64","operatingSystems":["linux"],"resources":{"cpu":"1m","memory":"1e3"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCatalogue(data)
		if err != nil {
			return
		}
		for i, it := range cloud.Types(model.NewAxis(), c.Types()) {
			if it.Name == "" || len(it.Offerings) == 0 {
				t.Fatalf("type %+v", it)
			}
			for _, o := range it.Offerings {
				if o.Price < 0 || o.Zone == "" || o.CapacityType == "" {
					t.Fatalf("%s: offering %+v", it.Name, o)
				}
			}
			if got := c.Types()[i]; !cloud.Holds(got.Capacity, got.Allocatable()) {
				t.Fatalf("%s: allocatable %v of %v", it.Name, got.Allocatable(), got.Capacity)
			}
			for _, r := range it.Requirements {
				for _, v := range r.Values {
					if err := labelValue(v); err != nil {
						t.Fatalf("%s: %s: %v", it.Name, r, err)
					}
				}
			}
		}
	})
}
