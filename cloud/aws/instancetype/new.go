// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/ec2"
)

// sizing is one type in the making.
type sizing struct {
	facts   *Facts
	class   *Class
	cluster *Cluster
	traits  traits
}

// New returns the type for nodes of the class, without offerings.
func New(facts *Facts, class *Class, cluster *Cluster) *cloud.InstanceType {
	s := &sizing{facts, class, cluster, traitsOf(class.Family)}
	pods, disk := s.pods(), s.disk()
	return &cloud.InstanceType{
		Name:         facts.InstanceType,
		Requirements: s.requirements(),
		Capacity:     s.capacity(pods, disk),
		Overhead: cloud.Overhead{
			KubeReserved:      s.kubeReserved(pods),
			SystemReserved:    class.Kubelet.SystemReserved.DeepCopy(),
			EvictionThreshold: s.evictionThreshold(disk),
		},
		DevicePools: s.devicePools(),
	}
}

// Supported reports whether instances of the type can be launched with the
// settings of the class. An unsupported type stays listed, without available
// offerings.
func Supported(facts *Facts, class *Class) bool {
	family, _ := split(facts.InstanceType)
	switch {
	case class.Family == awsv1.AMIFamilyAL2023 && family == "a1":
		return false
	case class.Family.IsWindows() && architecture(&facts.Description) != "amd64":
		return false
	case class.NestedVirtualization && !slices.Contains(facts.ProcessorInfo.SupportedFeatures, "nested-virtualization"):
		return false
	case class.Enclaves && facts.NitroEnclavesSupport != "supported":
		return false
	case class.PlacementGroup != nil && !slices.Contains(facts.PlacementGroupInfo.SupportedStrategies, class.PlacementGroup.Strategy):
		return false
	case class.ConnectionTracking && facts.Hypervisor != "nitro":
		return false
	}
	return len(class.Interfaces) == 0 || holdsInterfaces(&facts.NetworkInfo, class.Interfaces)
}

func holdsInterfaces(network *ec2.NetworkInfo, wanted []*awsv1.NetworkInterface) bool {
	if len(network.NetworkCards) == 0 || network.EnaSupport == "unsupported" {
		return false
	}
	var efa int64
	for _, w := range wanted {
		card := cardOf(network, int(w.NetworkCardIndex))
		if card == nil || int64(w.DeviceIndex) >= card.MaximumNetworkInterfaces {
			return false
		}
		if w.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			efa++
		}
	}
	return efa <= network.EfaInfo.MaximumEfaInterfaces
}

// cardOf returns the card with the index, nil when there is none.
func cardOf(network *ec2.NetworkInfo, index int) *ec2.NetworkCard {
	for i := range network.NetworkCards {
		if network.NetworkCards[i].NetworkCardIndex == index {
			return &network.NetworkCards[i]
		}
	}
	return nil
}

// traits are what the AMI families differ in.
type traits struct {
	windowsBuild    string // "" for Linux
	eniPods         bool   // pods are limited by network interfaces
	podsPerCore     bool   // set in the kubelet's configuration
	reservesForENIs bool   // memory is reserved for as many pods as network interfaces allow
	device          string // holds ephemeral storage; "" = unknown
	disk            resource.Quantity
}

func traitsOf(family awsv1.AMIFamily) traits {
	t := traits{podsPerCore: true, eniPods: true, reservesForENIs: true}
	switch family {
	case awsv1.AMIFamilyBottlerocket:
		t = traits{eniPods: true}
	case awsv1.AMIFamilyWindows2019:
		t = traits{podsPerCore: true, windowsBuild: "10.0.17763"}
	case awsv1.AMIFamilyWindows2022:
		t = traits{podsPerCore: true, windowsBuild: "10.0.20348"}
	case awsv1.AMIFamilyWindows2025:
		t = traits{podsPerCore: true, windowsBuild: "10.0.26100"}
	}
	disks := family.Disks()
	if len(disks) == 0 { // Custom: nothing is known of the image, so it is taken for one like AL2023
		t.disk = *awsv1.AMIFamilyAL2023.Disks()[0].EBS.VolumeSize
		return t
	}
	last := disks[len(disks)-1]
	t.device, t.disk = *last.DeviceName, *last.EBS.VolumeSize
	return t
}
