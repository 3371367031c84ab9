// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/quantity"
	"karpenter/cloud/ec2"
)

// Facts are what is known of an instance type in a region.
type Facts struct {
	ec2.Description
	Zones       []string // where it is offered
	BranchENIs  int64    // network interfaces for single pods; 0 = none, or no trunk to put them on
	NetworkMbps int64    // baseline; 0 = unknown
	MemoryBytes int64    // what nodes had with the image the class boots it from; 0 = none was seen yet
	Devices     ec2.Devices
}

// Cluster is what all node classes have in common.
type Cluster struct {
	Region         string
	MemoryOverhead float64 // share of memory that nodes don't see; ≥ 0
	ReservedENIs   int64   // network interfaces of a node that pods get no addresses of; ≥ 0
	GPUDevices     bool    // types have the devices that NVIDIA's driver publishes
	EFADevices     bool    // types have the devices that the driver dra.net publishes
}

// Class has the parts of an EC2NodeClass that its instance types depend on.
type Class struct {
	Family               awsv1.AMIFamily
	Kubelet              Kubelet
	Disks                []*awsv1.BlockDeviceMapping
	RAID0                bool                      // local disks hold pods' ephemeral storage
	Interfaces           []*awsv1.NetworkInterface // nil = the default one
	NestedVirtualization bool                      // wanted
	Enclaves             bool                      // wanted
	ConnectionTracking   bool                      // timeouts of it are set
	Zones                []Zone                    // of its subnets
	Reservations         []awsv1.CapacityReservation
	PlacementGroup       *PlacementGroup // nil = none
	Sharing              Sharing         // of GPUs
}

// Zone is an availability zone.
type Zone struct {
	Name string
	ID   string // "" = unknown
}

// PlacementGroup is the group instances are started in.
type PlacementGroup struct {
	ID         string
	Strategy   string // "cluster", "partition" or "spread"
	Partitions int    // > 0 for strategy partition
}

// Kubelet has the parts of the kubelet's configuration that decide how much
// pods can use. Soft eviction thresholds are not among them: they only evict
// pods early.
type Kubelet struct {
	MaxPods        *int64              // nil = what the family allows
	PodsPerCore    int64               // 0 = no limit
	KubeReserved   corev1.ResourceList // replaces the family's reservations, by resource
	SystemReserved corev1.ResourceList
	EvictionHard   map[string]string // signal → quantity or percentage
}

// NewClass returns the class from its spec and status. Kubelet settings that
// are not numbers or quantities, such as expressions, are left out: the
// defaults of the family apply, unless Formulas replace them.
func NewClass(c *awsv1.EC2NodeClass, group *PlacementGroup) *Class {
	out := &Class{
		Family:             c.AMIFamily(),
		Kubelet:            newKubelet(c.Spec.Kubelet),
		Disks:              c.Spec.BlockDeviceMappings,
		RAID0:              c.Spec.InstanceStorePolicy != nil && *c.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
		Interfaces:         c.Spec.NetworkInterfaces,
		Enclaves:           c.Spec.EnclaveOptions != nil && c.Spec.EnclaveOptions.Enabled,
		ConnectionTracking: c.Spec.ConnectionTracking != nil,
		Reservations:       c.Status.CapacityReservations,
		PlacementGroup:     group,
	}
	if o := c.Spec.CPUOptions; o != nil && o.NestedVirtualization != nil {
		out.NestedVirtualization = *o.NestedVirtualization == "enabled"
	}
	out.Sharing, _ = ParseSharing(c.Annotations[awsv1.ConsumableCapacityAnnotationKey]) // the class says what is wrong with it
	for _, subnet := range c.Status.Subnets {
		if zone := (Zone{subnet.Zone, subnet.ZoneID}); !slices.Contains(out.Zones, zone) {
			out.Zones = append(out.Zones, zone)
		}
	}
	slices.SortFunc(out.Zones, func(a, b Zone) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func newKubelet(config awsv1.KubeletConfiguration) Kubelet {
	var k Kubelet
	decode(config, "maxPods", &k.MaxPods)
	decode(config, "podsPerCore", &k.PodsPerCore)
	decode(config, "evictionHard", &k.EvictionHard)
	k.KubeReserved = quantities(config, "kubeReserved")
	k.SystemReserved = quantities(config, "systemReserved")
	return k
}

// decode sets what into points to when the field is there and of its type.
func decode[T any](config awsv1.KubeletConfiguration, field string, into *T) {
	var value T
	if text, ok := config[field]; ok && json.Unmarshal(text.Raw, &value) == nil {
		*into = value
	}
}

func quantities(config awsv1.KubeletConfiguration, field string) corev1.ResourceList {
	var texts map[string]any
	decode(config, field, &texts)
	out := corev1.ResourceList{}
	for name, text := range texts {
		text, _ := text.(string)
		if q, err := quantity.Parse(text); err == nil && q.Sign() >= 0 {
			out[corev1.ResourceName(name)] = q
		}
	}
	return out
}
