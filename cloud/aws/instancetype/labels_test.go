// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

func model64(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

// publishedLabels returns the labels of the catalogue; "" stands for none, but
// for the hypervisor.
func publishedLabels(it *ec2.Type) map[string]string {
	known := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	out := map[string]string{
		model.LabelInstanceType:                            it.Name,
		model.LabelArch:                                    it.Arch,
		model.LabelOS:                                      "linux",
		model.LabelRegion:                                  region,
		awsv1.InstanceCategoryLabelKey:                     it.Category,
		awsv1.InstanceGenerationLabelKey:                   strconv.Itoa(it.Generation),
		awsv1.InstanceFamilyLabelKey:                       it.Family,
		awsv1.InstanceSizeLabelKey:                         it.Size,
		awsv1.InstanceCapabilityFlexLabelKey:               strconv.FormatBool(it.Flex),
		awsv1.InstanceHypervisorLabelKey:                   it.Hypervisor,
		awsv1.InstanceCPULabelKey:                          known(it.CPU),
		awsv1.InstanceCPUManufacturerLabelKey:              it.CPUManufacturer,
		awsv1.InstanceMemoryLabelKey:                       known(it.MemoryMiB),
		awsv1.InstanceEBSBandwidthLabelKey:                 known(it.EBSMbps),
		awsv1.InstanceNetworkBandwidthLabelKey:             known(it.NetworkMbps),
		awsv1.InstanceLocalNVMELabelKey:                    known(it.NVMeGB),
		awsv1.InstanceGPUNameLabelKey:                      "",
		awsv1.InstanceAcceleratorNameLabelKey:              "",
		awsv1.InstanceAcceleratorCountLabelKey:             "",
		awsv1.InstanceGPUCountLabelKey:                     "",
		awsv1.CapacityReservationIDLabelKey:                "",
		awsv1.CapacityReservationTypeLabelKey:              "",
		awsv1.InstanceCPUSustainedClockSpeedMHzLabelKey:    strconv.FormatInt(it.ClockMHz, 10),
		awsv1.InstanceEncryptionInTransitSupportedLabelKey: strconv.FormatBool(it.EncryptionInTransit),
	}
	if d := it.GPU; d != nil {
		out[awsv1.InstanceGPUNameLabelKey], out[awsv1.InstanceGPUManufacturerLabelKey] = d.Name, d.Manufacturer
		out[awsv1.InstanceGPUCountLabelKey], out[awsv1.InstanceGPUMemoryLabelKey] = strconv.FormatInt(d.Count, 10), known(d.MemoryMiB)
	}
	if d := it.Accelerator; d != nil {
		out[awsv1.InstanceAcceleratorNameLabelKey], out[awsv1.InstanceAcceleratorManufacturerLabelKey] = d.Name, d.Manufacturer
		out[awsv1.InstanceAcceleratorCountLabelKey] = known(d.Count)
	}
	return out
}

func TestLabels(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, instanceType string
		want               map[string]string
	}{
		{"spec 65/51", "m5.large", map[string]string{
			awsv1.InstanceCategoryLabelKey: "m", awsv1.InstanceGenerationLabelKey: "5", awsv1.InstanceFamilyLabelKey: "m5",
			awsv1.InstanceSizeLabelKey: "large", awsv1.InstanceCPULabelKey: "2", awsv1.InstanceMemoryLabelKey: "8192",
			awsv1.InstanceHypervisorLabelKey: "nitro", awsv1.InstanceCapabilityFlexLabelKey: "false",
		}},
		{"spec 65/52 flex", "c7i-flex.large", map[string]string{
			awsv1.InstanceCapabilityFlexLabelKey: "true", awsv1.InstanceGenerationLabelKey: "7", awsv1.InstanceFamilyLabelKey: "c7i-flex",
		}},
		{"spec 65/52 high memory", "u-6tb1.112xlarge", map[string]string{
			awsv1.InstanceCategoryLabelKey: "u", awsv1.InstanceGenerationLabelKey: "1",
		}},
		{"spec 65/53 V100", "p3.8xlarge", map[string]string{awsv1.InstanceGPUNameLabelKey: "v100", awsv1.InstanceGPUCountLabelKey: "4"}},
		{"metal has an empty hypervisor", "a1.metal", map[string]string{awsv1.InstanceHypervisorLabelKey: ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := instancetype.New(w.facts(t, c.instanceType), plain(awsv1.AMIFamilyAL2023), defaults())
			for key, want := range c.want {
				if got, ok := it.Requirements.Value(key); !ok || got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

// absent reports whether nodes are said not to have the label.
func absent(rs model.Requirements, key string) bool {
	r, ok := rs.Get(key)
	return ok && r.Operator() == model.DoesNotExist
}

// spec 65/53: types without a GPU, or with several kinds, have no GPU labels.
func TestSeveralGPUs(t *testing.T) {
	w := newWorld(t)
	mixed := w.facts(t, "g4dn.xlarge")
	mixed.GpuInfo.Gpus = append(slices.Clone(mixed.GpuInfo.Gpus), ec2.DeviceInfo{Name: "A100", Manufacturer: "NVIDIA", Count: 1})
	for _, facts := range []*instancetype.Facts{mixed, w.facts(t, "m5.large")} {
		it := instancetype.New(facts, plain(awsv1.AMIFamilyAL2023), defaults())
		for _, key := range []string{
			awsv1.InstanceGPUNameLabelKey, awsv1.InstanceGPUManufacturerLabelKey, awsv1.InstanceGPUCountLabelKey, awsv1.InstanceGPUMemoryLabelKey,
		} {
			if !absent(it.Requirements, key) {
				t.Errorf("%s: %s is there", it.Name, key)
			}
		}
	}
	if got := value(instancetype.New(mixed, plain(awsv1.AMIFamilyAL2023), defaults()).Capacity, instancetype.ResourceNvidiaGPU); got != 2 {
		t.Errorf("%d GPUs in all, want 2", got)
	}
}

// spec 65/54: labels of local disks can be compared, demanded and rejected.
func TestLocalDisks(t *testing.T) {
	w, key := newWorld(t), awsv1.InstanceLocalNVMELabelKey
	for _, c := range []struct {
		instanceType string
		demand       model.Requirement
		want         bool
	}{
		{"m5d.large", model.NewRequirement(key, model.Gt, "50"), true},
		{"m5d.large", model.NewRequirement(key, model.Gt, "100"), false},
		{"m5.large", model.NewRequirement(key, model.Gt, "50"), false},
		{"m5d.large", model.NewRequirement(key, model.Exists), true},
		{"m5.large", model.NewRequirement(key, model.Exists), false},
		{"m5d.large", model.NewRequirement(key, model.DoesNotExist), false},
		{"m5.large", model.NewRequirement(key, model.DoesNotExist), true},
		{"i2.xlarge", model.NewRequirement(key, model.Exists), false}, // its disks are not NVMe
	} {
		it := instancetype.New(w.facts(t, c.instanceType), plain(awsv1.AMIFamilyAL2023), defaults())
		if _, got := it.Requirements.Intersects(model.NewRequirements(c.demand)); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.instanceType, c.demand, got, c.want)
		}
	}
}

// spec 65/56: a type can be of any of its reservations, a spot node of none.
func TestReservationLabels(t *testing.T) {
	w, class, market := newWorld(t), plain(awsv1.AMIFamilyAL2023), openMarket()
	class.Reservations = []awsv1.CapacityReservation{
		{ID: "cr-1", InstanceType: "m5.large", AvailabilityZone: "us-east-1a"},
		{ID: "cr-2", InstanceType: "m5.large", AvailabilityZone: "us-east-1b"},
		{ID: "cr-3", InstanceType: "c5.large", AvailabilityZone: "us-east-1b"},
	}
	facts := w.facts(t, "m5.large")
	it := instancetype.New(facts, class, defaults())
	ids, _ := it.Requirements.Get(awsv1.CapacityReservationIDLabelKey)
	capacityTypes, _ := it.Requirements.Get(model.LabelCapacityType)
	if fmt.Sprint(ids.Values, capacityTypes.Values) != "[cr-1 cr-2] [on-demand reserved spot]" {
		t.Errorf("reservations %v, capacity types %v", ids.Values, capacityTypes.Values)
	}
	for _, o := range instancetype.Offerings(facts, class, market) {
		if _, pinned := o.Requirements.Value(awsv1.CapacityReservationIDLabelKey); pinned != (o.CapacityType() == model.Reserved) {
			t.Errorf("%s: pinned to a reservation: %v", o.Requirements, pinned)
		}
	}
}

func TestZones(t *testing.T) {
	w, class := newWorld(t), plain(awsv1.AMIFamilyAL2023)
	facts := w.facts(t, "m5.large")
	facts.Zones = []string{"us-east-1b", "us-east-1c"}
	it := instancetype.New(facts, class, defaults())
	if zone, _ := it.Requirements.Value(model.LabelZone); zone != "us-east-1b" {
		t.Errorf("zone %q", zone)
	}
	if id, _ := it.Requirements.Value(awsv1.ZoneIDLabelKey); id != "use1-az2" {
		t.Errorf("zone ID %q", id)
	}
	class.Zones = []instancetype.Zone{{Name: "us-east-1a"}}
	it = instancetype.New(facts, class, defaults())
	if zone, _ := it.Requirements.Get(model.LabelZone); zone.AllowsAbsence() || len(zone.Values) > 0 {
		t.Errorf("a type without a zone has the requirement %s", zone)
	}
}

// spec 65/49: Windows runs on amd64 only.
func TestWindows(t *testing.T) {
	w, class := newWorld(t), plain(awsv1.AMIFamilyWindows2022)
	intel, arm := w.facts(t, "m5.large"), w.facts(t, "m6g.large")
	it := instancetype.New(intel, class, defaults())
	for key, want := range map[string]string{model.LabelOS: "windows", corev1.LabelWindowsBuild: "10.0.20348"} {
		if got, _ := it.Requirements.Value(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := value(it.Capacity, corev1.ResourcePods); got != 110 {
		t.Errorf("%d pods", got)
	}
	if got := value(it.Capacity, instancetype.ResourcePrivateIPv4); got != 9 {
		t.Errorf("%d addresses", got)
	}
	if got := value(it.Capacity, corev1.ResourceEphemeralStorage); got != 50<<30 {
		t.Errorf("%d bytes of disk", got)
	}
	for _, demand := range []model.Requirement{
		model.NewRequirement(model.LabelOS, model.In, "windows"), model.NewRequirement(model.LabelOS, model.In, "linux"),
		model.NewRequirement(model.LabelOS, model.NotIn, "linux"),
	} {
		it := instancetype.New(arm, class, defaults())
		if _, ok := it.Requirements.Intersects(model.NewRequirements(demand)); ok {
			t.Errorf("a Windows node on arm64 meets %s", demand)
		}
	}
	for _, o := range instancetype.Offerings(arm, class, openMarket()) {
		if o.Available {
			t.Errorf("Windows on arm64 can be bought: %s", o.Requirements)
		}
	}
}
