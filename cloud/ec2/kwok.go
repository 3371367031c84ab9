// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/cloud/kwok"
)

// LabelDomain is the domain of the labels that describe EC2 types.
const LabelDomain = "karpenter.k8s.aws"

// The simulated discount of spot on the on-demand price.
const (
	minDiscount = 0.55
	maxDiscount = 0.75
)

// KWOKTypes returns the types with a price in the region as entries of the
// KWOK provider, in the zones a, b and c of the region, on demand and as spot.
// Spot prices are simulated; see the package's description. What is
// allocatable is what the catalogue says.
func KWOKTypes(region string) ([]kwok.Entry, error) {
	types, err := Types()
	if err != nil {
		return nil, err
	}
	var out []kwok.Entry
	for i := range types {
		if price, ok := types[i].OnDemand[region]; ok {
			out = append(out, types[i].entry(region, price))
		}
	}
	if len(out) == 0 {
		regions, err := Regions()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no prices for region %q; there are some for %s", region, strings.Join(regions, ", "))
	}
	return out, nil
}

func (t *Type) entry(region string, onDemand float64) kwok.Entry {
	reserved := t.Capacity.Reserved()
	e := kwok.Entry{
		Name:             t.Name,
		Architecture:     t.Arch,
		OperatingSystems: []corev1.OSName{corev1.Linux},
		Resources: corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(t.Capacity.CPU, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(t.Capacity.MemoryMiB<<20, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(t.Capacity.EphemeralGiB<<30, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(t.Capacity.Pods, resource.DecimalSI),
		},
		Overhead: corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(reserved.CPUMilli, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(reserved.MemoryMiB<<20, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(reserved.EphemeralGiB<<30, resource.BinarySI),
		},
		Requirements: append(t.labels(), kwok.In(corev1.LabelTopologyRegion, region)),
	}
	for name, n := range t.Capacity.Extended {
		e.Resources[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	for _, letter := range []string{"a", "b", "c"} {
		zone := region + letter
		e.Offerings = append(e.Offerings,
			kwok.NewOffering(zone, v1.CapacityTypeOnDemand, onDemand),
			kwok.NewOffering(zone, v1.CapacityTypeSpot, spotPrice(t.Name, zone, onDemand)))
	}
	return e
}

// spotPrice is the simulated price of a type in a zone, in steps of a
// hundredth of a cent, as EC2 quotes them.
func spotPrice(name, zone string, onDemand float64) float64 {
	const step = 1e-4
	sum := sha256.Sum256([]byte(name + "/" + zone))
	draw := float64(binary.BigEndian.Uint32(sum[:])) / math.MaxUint32
	discount := minDiscount + draw*(maxDiscount-minDiscount)
	return max(math.Round(onDemand*(1-discount)/step), 1) / (1 / step)
}

// labels returns the labels of the type's nodes in LabelDomain, sorted. A label
// that does not apply is stated to be absent.
func (t *Type) labels() []kwok.RequirementEntry {
	values := map[string]string{
		"instance-category":                        t.Category,
		"instance-generation":                      strconv.Itoa(t.Generation),
		"instance-family":                          t.Family,
		"instance-size":                            t.Size,
		"instance-capability-flex":                 strconv.FormatBool(t.Flex),
		"instance-cpu":                             number(t.CPU),
		"instance-cpu-manufacturer":                t.CPUManufacturer,
		"instance-cpu-sustained-clock-speed-mhz":   strconv.FormatInt(t.ClockMHz, 10), // 0 = EC2 does not tell
		"instance-memory":                          number(t.MemoryMiB),
		"instance-network-bandwidth":               number(t.NetworkMbps),
		"instance-ebs-bandwidth":                   number(t.EBSMbps),
		"instance-local-nvme":                      number(t.NVMeGB),
		"instance-encryption-in-transit-supported": strconv.FormatBool(t.EncryptionInTransit),
	}
	maps.Copy(values, t.GPU.labels("instance-gpu-"))
	maps.Copy(values, t.Accelerator.labels("instance-accelerator-"))
	delete(values, "instance-accelerator-memory")
	// Metal has no hypervisor but has the label, with an empty value.
	out := []kwok.RequirementEntry{kwok.In(LabelDomain+"/instance-hypervisor", t.Hypervisor)}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if values[key] == "" {
			out = append(out, kwok.Absent(LabelDomain+"/"+key))
		} else {
			out = append(out, kwok.In(LabelDomain+"/"+key, values[key]))
		}
	}
	return out
}

// labels describes a device; without one every label is empty.
func (d *Device) labels(prefix string) map[string]string {
	if d == nil {
		d = &Device{}
	}
	count := number(d.Count)
	if d.Name != "" {
		count = strconv.FormatInt(d.Count, 10)
	}
	return map[string]string{
		prefix + "name": d.Name, prefix + "manufacturer": d.Manufacturer,
		prefix + "count": count, prefix + "memory": number(d.MemoryMiB),
	}
}

// number prints n; zero means unknown and prints as nothing.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
