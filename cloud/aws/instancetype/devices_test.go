// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/ec2"
)

// typeWith returns the type as nodes of a class with the annotation have it.
func typeWith(t *testing.T, name, annotation string, cluster Cluster) *cloud.InstanceType {
	t.Helper()
	tables, err := ec2.DevicesOfTypes()
	if err != nil {
		t.Fatal(err)
	}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{awsv1.ConsumableCapacityAnnotationKey: annotation}}}
	return New(&Facts{Description: ec2.Description{InstanceType: name}, Devices: tables.Types[name]}, NewClass(class, nil), &cluster)
}

// TestDevicePools: types have the devices of the drivers that are on, and no others.
// spec 48/90, 48/91, 46/66, 46/72.
func TestDevicePools(t *testing.T) {
	both := Cluster{GPUDevices: true, EFADevices: true}
	for _, tc := range []struct {
		name    string
		cluster Cluster
		want    string
	}{
		{"p5.48xlarge", both, "gpu.nvidia.com/gpus-p5.48xlarge: 8; dra.net/network-p5.48xlarge: 32"},
		{"p5.48xlarge", Cluster{GPUDevices: true}, "gpu.nvidia.com/gpus-p5.48xlarge: 8"},
		{"p5.48xlarge", Cluster{EFADevices: true}, "dra.net/network-p5.48xlarge: 32"},
		{"p5.48xlarge", Cluster{}, ""},
		{"g5.12xlarge", both, "gpu.nvidia.com/gpus-g5.12xlarge: 4; dra.net/network-g5.12xlarge: 1"},
		{"m5.large", both, ""},
	} {
		var got []string
		for _, p := range typeWith(t, tc.name, "", tc.cluster).DevicePools {
			got = append(got, fmt.Sprintf("%s/%s: %d", p.Driver, p.Name, len(p.Devices)))
		}
		if got := strings.Join(got, "; "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	gpus := typeWith(t, "g5.12xlarge", "", both).DevicePools[0]
	d := gpus.Devices[3]
	memory := d.Capacity["memory"].Value
	if d.Name != "gpu-3" || *d.Attributes["productName"].StringValue != "NVIDIA A10G" || *d.Attributes["cudaComputeCapability"].VersionValue != "8.6.0" || memory.String() != "23028Mi" ||
		*d.Attributes["resource.kubernetes.io/pcieRoot"].StringValue != "pci0000:00" || d.AllowMultipleAllocations != nil {
		t.Errorf("%+v", d)
	}
	if len(gpus.Bindings) != 2 || len(gpus.Bindings[0].Devices) != 4 || gpus.Bindings[0].Attribute != "gpu.nvidia.com/driverVersion" {
		t.Errorf("bindings %+v", gpus.Bindings)
	}
}

// TestDeviceTables: the tables are whole, and GPUs share roots with EFA interfaces where
// they should. spec 46/66, 46/67.
func TestDeviceTables(t *testing.T) {
	tables, err := ec2.DevicesOfTypes()
	if err != nil {
		t.Fatal(err)
	}
	types, interfaces := 0, 0
	for name, of := range tables.Types {
		if of.GPUs == nil {
			t.Errorf("%s has no GPU", name)
			continue
		}
		types++
		common := of.EFAs == nil
		if of.EFAs != nil {
			interfaces += len(of.EFAs.PCIeRoots)
			if n := len(of.EFAs.NUMANodes); n > 0 && n != len(of.EFAs.PCIeRoots) {
				t.Errorf("%s: %d NUMA nodes", name, n)
			}
			for _, root := range of.EFAs.PCIeRoots {
				common = common || strings.Contains(" "+strings.Join(of.GPUs.PCIeRoots, " ")+" ", " "+root+" ")
			}
		}
		family, _, _ := strings.Cut(name, ".")
		if apart := family == "g6" || family == "g6e" || family == "gr6" || name == "g4dn.metal"; of.EFAs != nil && common == apart {
			t.Errorf("%s: a GPU and an EFA interface on one root: %v", name, common)
		}
		if (Sharing{}).capacity(of.GPUs.Memory) == nil {
			t.Errorf("%s: memory %q", name, of.GPUs.Memory)
		}
	}
	if types != 53 || interfaces != 138 || tables.Source == "" {
		t.Errorf("%d types with GPUs, %d EFA interfaces, from %q", types, interfaces, tables.Source)
	}
}

// TestSharing: the annotation says how claims share GPUs. spec 48/93, 46/69.
func TestSharing(t *testing.T) {
	for _, tc := range []struct{ annotation, memory, shares string }{
		{"", "23034Mi", ""}, {"disabled", "23034Mi", ""},
		{"memory", "23034Mi, 23034Mi unless said, 1Mi to 23034Mi by 1Mi", ""},
		{"unlimited", "23034Mi, 0 unless said, 0 to 23034Mi by 1Mi", ""},
		{"4", "23034Mi, 0 unless said, 0 to 23034Mi by 1Mi", "4, 1 unless said, 1 to 4 by 1"},
	} {
		d := typeWith(t, "g6.xlarge", tc.annotation, Cluster{GPUDevices: true}).DevicePools[0].Devices[0]
		show := func(name string) string {
			c, ok := d.Capacity[resourcev1.QualifiedName(name)]
			if !ok {
				return ""
			}
			out := c.Value.String()
			if p := c.RequestPolicy; p != nil {
				out += fmt.Sprintf(", %s unless said, %s to %s by %s", p.Default, p.ValidRange.Min, p.ValidRange.Max, p.ValidRange.Step)
			}
			return out
		}
		shared := d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		if show("memory") != tc.memory || show("shares") != tc.shares || shared != strings.Contains(tc.memory, "unless") {
			t.Errorf("%q: memory %s, shares %s, shared %v", tc.annotation, show("memory"), show("shares"), shared)
		}
	}
	for _, bad := range []string{"0", "-1", "2.5", "Memory", "foo", " 4"} {
		if s, err := ParseSharing(bad); err == nil || s != (Sharing{}) {
			t.Errorf("%q: %+v, %v", bad, s, err)
		}
	}
}

// TestRequestsEFA: claims for the driver dra.net ask for EFA interfaces.
// spec 48/92, 46/70.
func TestRequestsEFA(t *testing.T) {
	for drivers, want := range map[string]bool{"": false, "gpu.nvidia.com, dra.net": true, "notdra.net": false, "dra.net": true} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.RequestedDRADriversAnnotationKey: drivers}}}
		if got := RequestsEFA(claim); got != want {
			t.Errorf("%q: %v", drivers, got)
		}
	}
}
