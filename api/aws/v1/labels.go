// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	karpenterv1 "karpenter/api/v1"
)

// Labels of the nodes the provider makes. All are well-known.
const (
	// NodeClassLabelKey names the EC2NodeClass.
	NodeClassLabelKey = Group + "/ec2nodeclass"

	// InstanceCategoryLabelKey is the letters a type's name begins with: "c".
	InstanceCategoryLabelKey = Group + "/instance-category"
	// InstanceGenerationLabelKey is the number after them: "7".
	InstanceGenerationLabelKey = Group + "/instance-generation"
	// InstanceFamilyLabelKey is the name up to the dot: "c7g".
	InstanceFamilyLabelKey = Group + "/instance-family"
	// InstanceSizeLabelKey is the name after the dot: "2xlarge".
	InstanceSizeLabelKey = Group + "/instance-size"
	// InstanceCapabilityFlexLabelKey is "true" for flex types, else "false".
	InstanceCapabilityFlexLabelKey = Group + "/instance-capability-flex"
	// InstanceHypervisorLabelKey is "nitro", "xen", or empty for bare metal.
	InstanceHypervisorLabelKey = Group + "/instance-hypervisor"
	// InstanceEncryptionInTransitSupportedLabelKey is "true" or "false".
	InstanceEncryptionInTransitSupportedLabelKey = Group + "/instance-encryption-in-transit-supported"
	// InstanceTenancyLabelKey is one of the InstanceTenancy constants.
	InstanceTenancyLabelKey = Group + "/instance-tenancy"

	// InstanceCPULabelKey is the number of processors.
	InstanceCPULabelKey = Group + "/instance-cpu"
	// InstanceCPUManufacturerLabelKey is their manufacturer: "intel".
	InstanceCPUManufacturerLabelKey = Group + "/instance-cpu-manufacturer"
	// InstanceCPUSustainedClockSpeedMHzLabelKey is their clock speed in MHz.
	InstanceCPUSustainedClockSpeedMHzLabelKey = Group + "/instance-cpu-sustained-clock-speed-mhz"
	// InstanceMemoryLabelKey is the memory in MiB that is advertised.
	InstanceMemoryLabelKey = Group + "/instance-memory"
	// InstanceEBSBandwidthLabelKey is the most Mbit/s to EBS.
	InstanceEBSBandwidthLabelKey = Group + "/instance-ebs-bandwidth"
	// InstanceNetworkBandwidthLabelKey is the baseline of the network, Mbit/s.
	InstanceNetworkBandwidthLabelKey = Group + "/instance-network-bandwidth"
	// InstanceLocalNVMELabelKey is the size in GB of disks that come with it.
	InstanceLocalNVMELabelKey = Group + "/instance-local-nvme"

	// InstanceGPUNameLabelKey is the model of the GPUs: "t4".
	InstanceGPUNameLabelKey = Group + "/instance-gpu-name"
	// InstanceGPUManufacturerLabelKey is their manufacturer: "nvidia".
	InstanceGPUManufacturerLabelKey = Group + "/instance-gpu-manufacturer"
	// InstanceGPUCountLabelKey is their number.
	InstanceGPUCountLabelKey = Group + "/instance-gpu-count"
	// InstanceGPUMemoryLabelKey is the memory of one of them in MiB.
	InstanceGPUMemoryLabelKey = Group + "/instance-gpu-memory"
	// InstanceAcceleratorNameLabelKey is the model of accelerators that are no
	// GPUs: "inferentia2".
	InstanceAcceleratorNameLabelKey = Group + "/instance-accelerator-name"
	// InstanceAcceleratorManufacturerLabelKey is their manufacturer: "aws".
	InstanceAcceleratorManufacturerLabelKey = Group + "/instance-accelerator-manufacturer"
	// InstanceAcceleratorCountLabelKey is their number.
	InstanceAcceleratorCountLabelKey = Group + "/instance-accelerator-count"

	// ZoneIDLabelKey is the zone's ID, which is the same in all accounts.
	ZoneIDLabelKey = "topology.k8s.aws/zone-id"
	// CapacityReservationIDLabelKey names the reservation a node runs in.
	CapacityReservationIDLabelKey = Group + "/capacity-reservation-id"
	// CapacityReservationTypeLabelKey is the reservation's type.
	CapacityReservationTypeLabelKey = Group + "/capacity-reservation-type"
	// CapacityReservationInterruptibleLabelKey says whether EC2 may take the
	// reservation's capacity back: "true" or "false".
	CapacityReservationInterruptibleLabelKey = Group + "/capacity-reservation-interruptible"
	// PlacementGroupIDLabelKey names the placement group of a node.
	PlacementGroupIDLabelKey = Group + "/placement-group-id"
	// PlacementGroupPartitionLabelKey is the partition of it, from "1".
	PlacementGroupPartitionLabelKey = Group + "/placement-group-partition"
)

// Values of InstanceTenancyLabelKey.
const (
	InstanceTenancyDefault   = "default"
	InstanceTenancyDedicated = "dedicated"
)

// EBSZoneLabelKey is what volumes of the EBS driver call their zone.
const EBSZoneLabelKey = "topology.ebs.csi.aws.com/zone"

// Labels returns what the provider adds to karpenterv1.DefaultLabels.
func Labels() karpenterv1.Labels {
	offering := sets.New(
		ZoneIDLabelKey,
		CapacityReservationIDLabelKey,
		CapacityReservationTypeLabelKey,
		CapacityReservationInterruptibleLabelKey,
		PlacementGroupPartitionLabelKey,
	)
	return karpenterv1.Labels{
		WellKnown: offering.Union(sets.New(
			NodeClassLabelKey,
			InstanceCategoryLabelKey,
			InstanceGenerationLabelKey,
			InstanceFamilyLabelKey,
			InstanceSizeLabelKey,
			InstanceCapabilityFlexLabelKey,
			InstanceHypervisorLabelKey,
			InstanceEncryptionInTransitSupportedLabelKey,
			InstanceTenancyLabelKey,
			InstanceCPULabelKey,
			InstanceCPUManufacturerLabelKey,
			InstanceCPUSustainedClockSpeedMHzLabelKey,
			InstanceMemoryLabelKey,
			InstanceEBSBandwidthLabelKey,
			InstanceNetworkBandwidthLabelKey,
			InstanceLocalNVMELabelKey,
			InstanceGPUNameLabelKey,
			InstanceGPUManufacturerLabelKey,
			InstanceGPUCountLabelKey,
			InstanceGPUMemoryLabelKey,
			InstanceAcceleratorNameLabelKey,
			InstanceAcceleratorManufacturerLabelKey,
			InstanceAcceleratorCountLabelKey,
			PlacementGroupIDLabelKey,
		)),
		Offering:          offering,
		RestrictedDomains: sets.New(Group),
		Aliases:           map[string]string{EBSZoneLabelKey: corev1.LabelTopologyZone},
		KnownValues: map[string]sets.Set[string]{
			InstanceTenancyLabelKey: sets.New(InstanceTenancyDefault, InstanceTenancyDedicated),
		},
	}
}
