// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	karpenterv1 "karpenter/api/v1"
)

// AKSDomain is the label domain of AKS.
const AKSDomain = "kubernetes.azure.com"

// Labels of the nodes the provider launches. All but SKUHyperVGenerationLabelKey
// are well-known.
const (
	// NodeClassLabelKey names the AKSNodeClass.
	NodeClassLabelKey = Group + "/aksnodeclass"

	// SKUNameLabelKey is the VM size: "Standard_D4s_v5".
	SKUNameLabelKey = Group + "/sku-name"
	// SKUFamilyLabelKey is the letter a size begins with: "D".
	SKUFamilyLabelKey = Group + "/sku-family"
	// SKUSeriesLabelKey is the size without its numbers of CPUs: "Ds_v5".
	SKUSeriesLabelKey = Group + "/sku-series"
	// SKUVersionLabelKey is the version of the series, "1" without one: "5".
	SKUVersionLabelKey = Group + "/sku-version"
	// SKUCPULabelKey is the number of vCPUs.
	SKUCPULabelKey = Group + "/sku-cpu"
	// SKUMemoryLabelKey is the advertised memory in MiB.
	SKUMemoryLabelKey = Group + "/sku-memory"
	// SKUAcceleratedNetworkingLabelKey is "true" or "false".
	SKUAcceleratedNetworkingLabelKey = Group + "/sku-networking-accelerated"
	// SKUPremiumStorageLabelKey is "true" if premium disks can be attached, else
	// "false".
	SKUPremiumStorageLabelKey = Group + "/sku-storage-premium-capable"
	// SKUEphemeralOSMaxSizeLabelKey is the size in GB of the largest ephemeral OS
	// disk.
	SKUEphemeralOSMaxSizeLabelKey = Group + "/sku-storage-ephemeralos-maxsize"
	// SKUUltraSSDLabelKey is "true" if ultra disks can be attached, else "false".
	SKUUltraSSDLabelKey = Group + "/sku-storage-ultra-ssd"
	// SKUGPUNameLabelKey is the model of the GPUs: "A100".
	SKUGPUNameLabelKey = Group + "/sku-gpu-name"
	// SKUGPUManufacturerLabelKey is their manufacturer: "nvidia" or "amd".
	SKUGPUManufacturerLabelKey = Group + "/sku-gpu-manufacturer"
	// SKUGPUCountLabelKey is their number, "0" without any.
	SKUGPUCountLabelKey = Group + "/sku-gpu-count"
	// PlacementScopeLabelKey is one of the PlacementScope constants.
	PlacementScopeLabelKey = Group + "/placement-scope"

	// SKUHyperVGenerationLabelKey is the generations of virtual machines, "1" and
	// "2", that a size can boot. It matches images with sizes, and users cannot
	// ask for it.
	SKUHyperVGenerationLabelKey = Group + "/sku-hyperv-generation"

	// AKSCPULabelKey has the value of SKUCPULabelKey.
	AKSCPULabelKey = AKSDomain + "/sku-cpu"
	// AKSMemoryLabelKey has the value of SKUMemoryLabelKey.
	AKSMemoryLabelKey = AKSDomain + "/sku-memory"
	// AKSClusterLabelKey is the resource group of the nodes.
	AKSClusterLabelKey = AKSDomain + "/cluster"
	// AKSModeLabelKey is one of the Mode constants.
	AKSModeLabelKey = AKSDomain + "/mode"
	// AKSScaleSetPriorityLabelKey is one of the Priority constants.
	AKSScaleSetPriorityLabelKey = AKSDomain + "/scalesetpriority"
	// AKSPriorityLabelKey has the value of AKSScaleSetPriorityLabelKey.
	AKSPriorityLabelKey = AKSDomain + "/priority"
	// AKSOSSKULabelKey is the operating system: "Ubuntu" or "AzureLinux".
	AKSOSSKULabelKey = AKSDomain + "/os-sku"
	// AKSFIPSEnabledLabelKey is "true" with FIPS, else absent.
	AKSFIPSEnabledLabelKey = AKSDomain + "/fips_enabled"
)

// Values of PlacementScopeLabelKey.
const (
	PlacementScopeZonal    = "zonal"
	PlacementScopeRegional = "regional"
)

// Values of AKSModeLabelKey.
const (
	ModeSystem = "system"
	ModeUser   = "user"
)

// Values of AKSScaleSetPriorityLabelKey and AKSPriorityLabelKey.
const (
	PriorityRegular = "regular"
	PrioritySpot    = "spot"
)

// Values of SKUGPUManufacturerLabelKey.
const (
	ManufacturerNVIDIA = "nvidia"
	ManufacturerAMD    = "amd"
)

// RegionalZone is the zone label of regional instances.
const RegionalZone = "0"

// DiskZoneLabelKey is what volumes of the Azure Disk driver call their zone. The
// zone of a regional volume is "" there.
const DiskZoneLabelKey = "topology.disk.csi.azure.com/zone"

// OSSKU returns the value of AKSOSSKULabelKey for an image family.
func OSSKU(imageFamily string) string {
	switch imageFamily {
	case "", UbuntuImageFamily, Ubuntu2204ImageFamily, Ubuntu2404ImageFamily:
		return "Ubuntu"
	}
	return imageFamily
}

// Labels returns what the provider adds to karpenterv1.DefaultLabels.
func Labels() karpenterv1.Labels {
	offering := sets.New(
		PlacementScopeLabelKey,
		SKUUltraSSDLabelKey,
		AKSScaleSetPriorityLabelKey,
		AKSPriorityLabelKey,
	)
	boolean := sets.New("true", "false")
	priority := sets.New(PriorityRegular, PrioritySpot)
	return karpenterv1.Labels{
		WellKnown: offering.Union(sets.New(
			NodeClassLabelKey,
			SKUNameLabelKey,
			SKUFamilyLabelKey,
			SKUSeriesLabelKey,
			SKUVersionLabelKey,
			SKUCPULabelKey,
			SKUMemoryLabelKey,
			SKUAcceleratedNetworkingLabelKey,
			SKUPremiumStorageLabelKey,
			SKUEphemeralOSMaxSizeLabelKey,
			SKUGPUNameLabelKey,
			SKUGPUManufacturerLabelKey,
			SKUGPUCountLabelKey,
			AKSCPULabelKey,
			AKSMemoryLabelKey,
			AKSClusterLabelKey,
			AKSModeLabelKey,
			AKSOSSKULabelKey,
			AKSFIPSEnabledLabelKey,
		)),
		Offering:          offering,
		RestrictedDomains: sets.New(Group),
		Aliases:           map[string]string{DiskZoneLabelKey: corev1.LabelTopologyZone},
		ValueAliases:      map[string]map[string]string{corev1.LabelTopologyZone: {"": RegionalZone}},
		KnownValues: map[string]sets.Set[string]{
			karpenterv1.CapacityTypeLabelKey: sets.New(karpenterv1.CapacityTypeOnDemand, karpenterv1.CapacityTypeSpot),
			SKUAcceleratedNetworkingLabelKey: boolean,
			SKUPremiumStorageLabelKey:        boolean,
			SKUUltraSSDLabelKey:              boolean,
			SKUGPUManufacturerLabelKey:       sets.New(ManufacturerNVIDIA, ManufacturerAMD),
			PlacementScopeLabelKey:           sets.New(PlacementScopeZonal, PlacementScopeRegional),
			AKSModeLabelKey:                  sets.New(ModeSystem, ModeUser),
			AKSScaleSetPriorityLabelKey:      priority,
			AKSPriorityLabelKey:              priority,
			AKSOSSKULabelKey:                 sets.New("Ubuntu", "AzureLinux"),
			AKSFIPSEnabledLabelKey:           boolean,
		},
	}
}
