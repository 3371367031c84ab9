// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"fmt"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/ec2"
)

// Drivers for dynamic resource allocation.
const (
	DriverGPU = "gpu.nvidia.com"
	DriverEFA = "dra.net"
)

// pcieRoot is the attribute by which a claim has devices of several drivers close
// to each other.
const pcieRoot = "resource.kubernetes.io/pcieRoot"

// RequestsEFA reports whether the claim's pods use the Elastic Fabric Adapter, which
// an instance has only if it is launched with it.
func RequestsEFA(claim *v1.NodeClaim) bool {
	asked := claim.Spec.Resources.Requests[ResourceEFA]
	return asked.Sign() > 0 || slices.Contains(claim.RequestedDRADrivers(), DriverEFA)
}

// Sharing is the configuration of the driver for sharing GPUs between claims.
// The zero value is no sharing.
type Sharing struct {
	Shared bool
	// Whole gives a claim without a memory request all of the memory. Otherwise
	// such a claim shares the GPU without reserved memory.
	Whole  bool
	Shares int64 // of a GPU, one for a claim unless it asks for more; 0 = any number
}

// ParseSharing reads the annotation of an EC2NodeClass.
func ParseSharing(text string) (Sharing, error) {
	switch text {
	case "", "disabled":
		return Sharing{}, nil
	case "memory":
		return Sharing{Shared: true, Whole: true}, nil
	case "unlimited":
		return Sharing{Shared: true}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 1 {
		return Sharing{Shared: true, Shares: n}, nil
	}
	return Sharing{}, fmt.Errorf("%q: want disabled, memory, unlimited, or a whole number of shares", text)
}

// devicePools returns what drivers publish on nodes of the type.
func (s *sizing) devicePools() []cloud.DevicePool {
	var out []cloud.DevicePool
	if gpus := s.facts.Devices.GPUs; gpus != nil && s.cluster.GPUDevices {
		out = append(out, gpuPool(s.facts.InstanceType, gpus, s.class.Sharing))
	}
	if efas := s.facts.Devices.EFAs; efas != nil && s.cluster.EFADevices {
		out = append(out, efaPool(s.facts.InstanceType, efas))
	}
	return out
}

func gpuPool(instanceType string, of *ec2.GPUs, sharing Sharing) cloud.DevicePool {
	out := cloud.DevicePool{Driver: DriverGPU, Name: "gpus-" + instanceType}
	var names []string
	for i, root := range of.PCIeRoots {
		d := resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": is("gpu"), "productName": is(of.ProductName), "architecture": is(of.Architecture), "brand": is(of.Brand),
				"cudaComputeCapability": {VersionValue: &of.CUDAComputeCapability}, pcieRoot: is(root),
			},
			Capacity: sharing.capacity(of.Memory),
		}
		if sharing.Shared && len(d.Capacity) > 0 {
			d.AllowMultipleAllocations = ptr.To(true)
		}
		out.Devices, names = append(out.Devices, d), append(names, d.Name)
	}
	if len(names) > 1 {
		out.Bindings = []cloud.AttributeBinding{{Attribute: DriverGPU + "/driverVersion", Devices: names}, {Attribute: DriverGPU + "/cudaDriverVersion", Devices: names}}
	}
	return out
}

// capacity returns that of a GPU with so much memory.
func (s Sharing) capacity(memory string) map[resourcev1.QualifiedName]resourcev1.DeviceCapacity {
	whole, err := resource.ParseQuantity(memory)
	if err != nil {
		return nil
	}
	of := resourcev1.DeviceCapacity{Value: whole}
	out := map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
	if s.Shared {
		mebi := resource.MustParse("1Mi")
		of.RequestPolicy = policy(resource.MustParse("0"), resource.MustParse("0"), whole, mebi)
		if s.Whole {
			of.RequestPolicy = policy(whole, mebi, whole, mebi)
		}
	}
	if s.Shares > 0 {
		one, all := *count(1), *count(s.Shares)
		out["shares"] = resourcev1.DeviceCapacity{Value: all, RequestPolicy: policy(one, one, all, one)}
	}
	out["memory"] = of
	return out
}

func policy(preset, least, most, step resource.Quantity) *resourcev1.CapacityRequestPolicy {
	return &resourcev1.CapacityRequestPolicy{
		Default: &preset, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &least, Max: &most, Step: &step},
	}
}

func efaPool(instanceType string, of *ec2.EFAs) cloud.DevicePool {
	out := cloud.DevicePool{Driver: DriverEFA, Name: "network-" + instanceType}
	for i, root := range of.PCIeRoots {
		attributes := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"dra.net/pciDevice": is("Elastic Fabric Adapter (EFA)"), "dra.net/pciVendor": is("Amazon.com, Inc."),
			"dra.net/pciSubsystem": is(of.PCISubsystem), "dra.net/rdma": {BoolValue: ptr.To(of.RDMA)}, pcieRoot: is(root),
		}
		if i < len(of.NUMANodes) {
			attributes["dra.net/numaNode"] = resourcev1.DeviceAttribute{IntValue: ptr.To(of.NUMANodes[i])}
		}
		out.Devices = append(out.Devices, resourcev1.Device{Name: fmt.Sprintf("efa-%d", i), Attributes: attributes})
	}
	return out
}

func is(text string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &text}
}
