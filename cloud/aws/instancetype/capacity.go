// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/ec2"
)

// Resources beyond those of Kubernetes that types can have.
const (
	ResourcePodENI      corev1.ResourceName = "vpc.amazonaws.com/pod-eni"
	ResourceEFA         corev1.ResourceName = "vpc.amazonaws.com/efa"
	ResourcePrivateIPv4 corev1.ResourceName = "vpc.amazonaws.com/PrivateIPv4Address" // Windows only
	ResourceNvidiaGPU   corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMDGPU      corev1.ResourceName = "amd.com/gpu"
	ResourceGaudi       corev1.ResourceName = "habana.ai/gaudi"
	ResourceNeuron      corev1.ResourceName = "aws.amazon.com/neuron"
	ResourceNeuronCore  corev1.ResourceName = "aws.amazon.com/neuroncore"
)

const (
	windowsPods = 110 // of a kubelet without a setting
	hostPods    = 2   // on the host's network: aws-node and kube-proxy
	arm64MiB    = 64  // of memory that arm64 machines advertise and do not show
	gibibyte    = 1 << 30
	mebibyte    = 1 << 20
)

// capacity returns every resource that a type can have, with 0 if it has none.
func (s *sizing) capacity(pods int64, disk resource.Quantity) corev1.ResourceList {
	gpus := s.facts.GpuInfo.Gpus
	neurons, cores := s.neuron()
	out := corev1.ResourceList{
		corev1.ResourceCPU:              *count(s.facts.VCpuInfo.DefaultVCpus),
		corev1.ResourceMemory:           *resource.NewQuantity(s.memory(), resource.BinarySI),
		corev1.ResourceEphemeralStorage: disk,
		corev1.ResourcePods:             *count(pods),
		ResourcePodENI:                  *count(s.facts.BranchENIs),
		ResourceNvidiaGPU:               *count(devices(gpus, "NVIDIA")),
		ResourceAMDGPU:                  *count(devices(gpus, "AMD")),
		ResourceGaudi:                   *count(devices(gpus, "Habana")),
		ResourceNeuron:                  *count(neurons),
		ResourceNeuronCore:              *count(cores),
		ResourceEFA:                     *count(s.efas()),
	}
	if s.class.Family.IsWindows() {
		out[ResourcePrivateIPv4] = *count(max(0, s.facts.NetworkInfo.Ipv4AddressesPerInterface-1))
	}
	return out
}

func count(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

func devices(list []ec2.DeviceInfo, manufacturer string) int64 {
	var n int64
	for _, d := range list {
		if d.Manufacturer == manufacturer {
			n += d.Count
		}
	}
	return n
}

// neuron returns how many devices there are, and how many cores the first kind
// of them has.
func (s *sizing) neuron() (total, cores int64) {
	list := s.facts.NeuronInfo.NeuronDevices
	for _, d := range list {
		total += d.Count
	}
	if len(list) > 0 {
		cores = list[0].Count * list[0].CoreInfo.Count
	}
	return total, cores
}

// efas are the interfaces of the Elastic Fabric Adapter: those that the class
// lists, or as many as fit.
func (s *sizing) efas() int64 {
	if s.class.Interfaces == nil {
		return s.facts.NetworkInfo.EfaInfo.MaximumEfaInterfaces
	}
	var n int64
	for _, i := range s.class.Interfaces {
		if i.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			n++
		}
	}
	return n
}

// estimatedMemory returns the estimated memory of a node of the type, in bytes.
func (s *sizing) estimatedMemory() int64 {
	mib := s.facts.MemoryInfo.SizeInMiB
	if a := s.facts.ProcessorInfo.SupportedArchitectures; len(a) > 0 && a[0] == "arm64" {
		mib -= arm64MiB
	}
	return max(0, mib-int64(math.Ceil(float64(mib)*s.cluster.MemoryOverhead))) * mebibyte
}

// memory returns the observed memory of nodes, or else the estimate.
func (s *sizing) memory() int64 {
	if s.facts.MemoryBytes > 0 {
		return s.facts.MemoryBytes
	}
	return s.estimatedMemory()
}

// disk returns the size of the disk for the ephemeral storage of pods.
func (s *sizing) disk() resource.Quantity {
	if local := s.facts.InstanceStorageInfo; s.class.RAID0 && local != nil && local.TotalSizeInGB > 0 {
		return *resource.NewQuantity(local.TotalSizeInGB*1e9, resource.DecimalSI)
	}
	for _, d := range s.class.Disks {
		if d.RootVolume && sized(d) {
			return d.EBS.VolumeSize.DeepCopy()
		}
	}
	fallback := s.traits.disk.DeepCopy()
	if s.class.Family == awsv1.AMIFamilyCustom && len(s.class.Disks) > 0 {
		if last := s.class.Disks[len(s.class.Disks)-1]; sized(last) {
			return last.EBS.VolumeSize.DeepCopy()
		}
		return fallback
	}
	for _, d := range s.class.Disks {
		if d.DeviceName != nil && *d.DeviceName == s.traits.device && sized(d) {
			return d.EBS.VolumeSize.DeepCopy()
		}
	}
	return fallback
}

func sized(d *awsv1.BlockDeviceMapping) bool { return d.EBS != nil && d.EBS.VolumeSize != nil }

// pods is how many pods a node takes.
func (s *sizing) pods() int64 {
	kubelet := &s.class.Kubelet
	pods := s.defaultPods()
	if kubelet.MaxPods != nil {
		pods = *kubelet.MaxPods
	}
	if kubelet.PodsPerCore > 0 && s.traits.podsPerCore {
		pods = min(pods, kubelet.PodsPerCore*s.facts.VCpuInfo.DefaultVCpus)
	}
	return pods
}

// defaultPods returns the number of pods if the kubelet has no other setting.
func (s *sizing) defaultPods() int64 {
	if s.traits.eniPods {
		return s.eniPods(s.cluster.ReservedENIs)
	}
	return windowsPods
}

// eniPods returns how many pods get an address of their own, or need none, if
// this number of network interfaces of the default card is reserved. Interfaces
// for EFA only have no addresses.
func (s *sizing) eniPods(reserved int64) int64 {
	network := &s.facts.NetworkInfo
	card := cardOf(network, network.DefaultNetworkCardIndex)
	if card == nil {
		return 0
	}
	usable := card.MaximumNetworkInterfaces - reserved
	for _, i := range s.class.Interfaces {
		if i.InterfaceType == awsv1.InterfaceTypeEFAOnly && i.NetworkCardIndex == 0 {
			usable--
		}
	}
	if usable <= 0 {
		return 0
	}
	return usable*(network.Ipv4AddressesPerInterface-1) + hostPods
}
