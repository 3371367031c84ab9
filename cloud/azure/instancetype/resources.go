// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
)

// GPUs as resources.
const (
	ResourceNVIDIAGPU corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMDGPU    corev1.ResourceName = "amd.com/gpu"
)

const (
	gibibyte    = 1 << 30
	mebibyte    = 1 << 20
	gigabyte    = 1_000_000_000
	evictionMiB = 750 // of free memory below which the kubelet evicts
)

// capacity holds every resource a size can have, so that none is unknown.
func capacity(facts *Facts, class *Class, cluster *Cluster) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(facts.VCPUs, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(visibleMemory(facts.MemoryGiB, cluster.MemoryOverhead), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(class.OSDiskGB*gigabyte, resource.DecimalSI),
		corev1.ResourcePods:             *resource.NewQuantity(MaxPods(class, cluster), resource.DecimalSI),
		ResourceNVIDIAGPU:               *resource.NewQuantity(facts.gpus(v1beta1.ManufacturerNVIDIA), resource.DecimalSI),
		ResourceAMDGPU:                  *resource.NewQuantity(facts.gpus(v1beta1.ManufacturerAMD), resource.DecimalSI),
	}
}

// visibleMemory is the memory that nodes see: whole GiB, less the overhead.
func visibleMemory(gib, overhead float64) int64 {
	all := int64(gib) * gibibyte
	return all - int64(math.Ceil(float64(all)*overhead))
}

// gpus is the number of GPUs of a manufacturer.
func (f *Facts) gpus(manufacturer string) int64 {
	if f.GPU == nil || f.GPU.Manufacturer != manufacturer {
		return 0
	}
	return f.SKU.GPUs
}

// How many pods fit on a node of a class that does not say.
const (
	podsWithoutPlugin  = 250
	podsOnOverlay      = 250
	podsOnSubnet       = 30 // each pod takes an address of the subnet
	podsOfOtherPlugins = 110
)

// MaxPods returns how many pods nodes take.
func MaxPods(class *Class, cluster *Cluster) int64 {
	switch {
	case class.MaxPods > 0:
		return class.MaxPods
	case cluster.NetworkPlugin == "none":
		return podsWithoutPlugin
	case cluster.NetworkPlugin == "azure" && cluster.NetworkPluginMode == "overlay":
		return podsOnOverlay
	case cluster.NetworkPlugin == "azure" && cluster.NetworkPluginMode == "":
		return podsOnSubnet
	}
	return podsOfOtherPlugins
}

// overhead is what AKS reserves on nodes.
func overhead(facts *Facts) cloud.Overhead {
	return cloud.Overhead{
		KubeReserved: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(reservedMilliCPU(facts.VCPUs), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(reservedMemoryMiB(facts.memoryMiB())*mebibyte, resource.BinarySI),
		},
		SystemReserved: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(0, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(0, resource.BinarySI),
		},
		EvictionThreshold: corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(evictionMiB*mebibyte, resource.BinarySI),
		},
	}
}

// bracket is a share of what is between two amounts.
type bracket struct{ from, to, percent int64 }

// reservedMilliCPU is 6 % of the first vCPU, 4 % of the second, 2 % of the next
// two and 1 % of the rest, in millicores.
func reservedMilliCPU(vCPUs int64) int64 {
	return taxed(vCPUs, []bracket{{0, 1, 6}, {1, 2, 4}, {2, 4, 2}, {4, math.MaxInt64, 1}}) * 1000 / 100
}

// reservedMemoryMiB is 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the
// next 8, 6 % of the next 112 and 2 % of the rest, in whole MiB.
func reservedMemoryMiB(mib int64) int64 {
	const gib = 1024
	return taxed(mib, []bracket{{0, 4 * gib, 25}, {4 * gib, 8 * gib, 20}, {8 * gib, 16 * gib, 10}, {16 * gib, 128 * gib, 6}, {128 * gib, math.MaxInt64, 2}}) / 100
}

// taxed returns a hundred times the sum of the shares.
func taxed(amount int64, brackets []bracket) int64 {
	var sum int64
	for _, b := range brackets {
		if n := min(amount, b.to) - b.from; n > 0 {
			sum += n * b.percent
		}
	}
	return sum
}

// Where Azure places an ephemeral OS disk.
const (
	NVMeDisk     = "NvmeDisk"
	CacheDisk    = "CacheDisk"
	ResourceDisk = "ResourceDisk"
)

// EphemeralDisk returns the size in GB of the largest OS disk on the host of the
// size, and where it is placed. The size is 0 if there can be none.
func EphemeralDisk(facts *Facts) (gb int64, placement string) {
	if !facts.EphemeralOSDisk {
		return 0, ""
	}
	for _, disk := range []struct {
		placement string
		bytes     int64
		implied   bool // it exists even if Azure lists no placements
	}{
		{NVMeDisk, facts.NVMeDiskMiB * mebibyte, false},
		{CacheDisk, facts.CachedDiskBytes, true},
		{ResourceDisk, facts.ResourceVolumeMiB * mebibyte, true},
	} {
		listed := slices.Contains(facts.Placements, disk.placement) || facts.Placements == nil && disk.implied
		if disk.bytes > 0 && listed {
			return disk.bytes / gigabyte, disk.placement
		}
	}
	return 0, ""
}
