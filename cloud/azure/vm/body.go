// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azure/subnet"
	"karpenter/model"
)

// order is a virtual machine that is to be made, with its surroundings.
type order struct {
	*machine.Want
	config *Config
	name   string
	joins  joins
	token  string
}

// subnet is the ARM ID of the subnet.
func (o *order) subnet() string {
	if own := o.Class.Spec.VNETSubnetID; own != nil {
		return *own
	}
	return o.config.Subnet
}

// pods is how many pods the node takes.
func (o *order) pods() int64 {
	class := instancetype.NewClass(o.Class, o.Kubernetes)
	return instancetype.MaxPods(&class, &instancetype.Cluster{NetworkPlugin: o.config.Cluster.NetworkPlugin, NetworkPluginMode: o.config.Cluster.NetworkPluginMode})
}

// networkInterface returns the request for the network interface. With Azure CNI and
// without overlay it has an address for each pod.
func (o *order) networkInterface() armnetwork.Interface {
	address := func(name string, primary bool) *armnetwork.InterfaceIPConfiguration {
		subnet := o.subnet()
		return &armnetwork.InterfaceIPConfiguration{Name: &name, Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
			Primary: &primary, PrivateIPAllocationMethod: to.Ptr(armnetwork.IPAllocationMethodDynamic), Subnet: &armnetwork.Subnet{ID: &subnet},
		}}
	}
	addresses := []*armnetwork.InterfaceIPConfiguration{address(o.name, true)}
	for _, id := range o.joins.pools {
		addresses[0].Properties.LoadBalancerBackendAddressPools = append(addresses[0].Properties.LoadBalancerBackendAddressPools, &armnetwork.BackendAddressPool{ID: &id})
	}
	if o.config.Cluster.NetworkPlugin == "azure" && o.config.Cluster.NetworkPluginMode == "" {
		for i := range o.pods() - 1 {
			addresses = append(addresses, address(fmt.Sprint("ipconfig", i+1), false))
		}
	}
	out := armnetwork.Interface{
		Location: &o.config.Region, Tags: pointers(o.Tags),
		Properties: &armnetwork.InterfacePropertiesFormat{
			IPConfigurations: addresses, EnableAcceleratedNetworking: to.Ptr(o.SKU.AcceleratedNetworking), EnableIPForwarding: to.Ptr(false),
		},
	}
	if parsed, _ := subnet.Parse(o.subnet()); !parsed.Managed(o.config.NodeResourceGroup) {
		out.Properties.NetworkSecurityGroup = &armnetwork.SecurityGroup{ID: to.Ptr(o.config.id("Microsoft.Network/networkSecurityGroups", o.joins.group))}
	}
	return out
}

// virtualMachine returns the request for the virtual machine.
func (o *order) virtualMachine() (armcompute.VirtualMachine, error) {
	none := armcompute.VirtualMachine{}
	if !strings.HasPrefix(strings.ToLower(o.Image.ID), "/communitygalleries/") {
		return none, fmt.Errorf("image %s is not in a community gallery", o.Image.ID)
	}
	script, err := o.script()
	if err != nil {
		return none, err
	}
	admin := o.config.Cluster.AdminUser
	out := armcompute.VirtualMachine{
		Location: &o.config.Region, Tags: pointers(o.Tags), Zones: machine.Zones(o.Choice.Offering.Zone()), Identity: identities(o.config.Identities),
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypes(o.Choice.Type.Name))},
			StorageProfile: &armcompute.StorageProfile{
				ImageReference: &armcompute.ImageReference{CommunityGalleryImageID: &o.Image.ID},
				OSDisk:         o.disk(),
			},
			NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{{
				ID:         to.Ptr(o.config.id(interfaceType, o.name)),
				Properties: &armcompute.NetworkInterfaceReferenceProperties{Primary: to.Ptr(true), DeleteOption: to.Ptr(armcompute.DeleteOptionsDelete)},
			}}},
			OSProfile: &armcompute.OSProfile{
				AdminUsername: &admin, ComputerName: &o.name, CustomData: to.Ptr(base64.StdEncoding.EncodeToString([]byte(script))),
				LinuxConfiguration: &armcompute.LinuxConfiguration{
					DisablePasswordAuthentication: to.Ptr(true),
					SSH: &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{
						{Path: to.Ptr("/home/" + admin + "/.ssh/authorized_keys"), KeyData: &o.config.SSHKey},
					}},
				},
			},
			Priority:        to.Ptr(armcompute.VirtualMachinePriorityTypesRegular),
			SecurityProfile: o.security(),
		},
	}
	if o.Choice.Offering.CapacityType() == model.Spot {
		out.Properties.Priority = to.Ptr(armcompute.VirtualMachinePriorityTypesSpot)
		out.Properties.EvictionPolicy = to.Ptr(armcompute.VirtualMachineEvictionPolicyTypesDelete)
		out.Properties.BillingProfile = &armcompute.BillingProfile{MaxPrice: to.Ptr(-1.0)}
	}
	if launch.UltraSSD(o.Claim) {
		out.Properties.AdditionalCapabilities = &armcompute.AdditionalCapabilities{UltraSSDEnabled: to.Ptr(true)}
	}
	return out, nil
}

func identities(ids []string) *armcompute.VirtualMachineIdentity {
	if len(ids) == 0 {
		return nil
	}
	out := &armcompute.VirtualMachineIdentity{
		Type: to.Ptr(armcompute.ResourceIdentityTypeUserAssigned), UserAssignedIdentities: map[string]*armcompute.UserAssignedIdentitiesValue{},
	}
	for _, id := range ids {
		out.UserAssignedIdentities[id] = &armcompute.UserAssignedIdentitiesValue{}
	}
	return out
}

func (o *order) disk() *armcompute.OSDisk {
	class := instancetype.NewClass(o.Class, o.Kubernetes)
	out := &armcompute.OSDisk{
		Name: &o.name, DiskSizeGB: to.Ptr(int32(class.OSDiskGB)), CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesFromImage),
		DeleteOption: to.Ptr(armcompute.DiskDeleteOptionTypesDelete),
	}
	if largest, placement := instancetype.EphemeralDisk(&instancetype.Facts{SKU: o.SKU}); class.OSDiskGB <= largest {
		out.DiffDiskSettings = &armcompute.DiffDiskSettings{Option: to.Ptr(armcompute.DiffDiskOptionsLocal), Placement: to.Ptr(armcompute.DiffDiskPlacement(placement))}
		out.Caching = to.Ptr(armcompute.CachingTypesReadOnly)
	}
	if set := o.config.DiskEncryptionSet; set != "" {
		out.ManagedDisk = &armcompute.ManagedDiskParameters{DiskEncryptionSet: &armcompute.DiskEncryptionSetParameters{ID: &set}}
	}
	return out
}

func (o *order) security() *armcompute.SecurityProfile {
	s := o.Class.Spec.Security
	if s == nil {
		return nil
	}
	out := &armcompute.SecurityProfile{EncryptionAtHost: s.EncryptionAtHost}
	if o.Class.TrustsLaunch() {
		out.SecurityType = to.Ptr(armcompute.SecurityTypesTrustedLaunch)
		out.UefiSettings = &armcompute.UefiSettings{SecureBootEnabled: s.TrustedLaunch.SecureBoot, VTpmEnabled: s.TrustedLaunch.VTPM}
	}
	return out
}

// script returns what runs at the first boot.
func (o *order) script() (string, error) {
	overhead := o.Choice.Type.Overhead
	reserved := map[string]string{}
	for name, quantity := range overhead.KubeReserved {
		reserved[string(name)] = quantity.String()
	}
	free := overhead.EvictionThreshold[corev1.ResourceMemory]
	arch, _ := o.Choice.Type.Requirements.Value(model.LabelArch)
	return o.config.Cluster.Script(&bootstrap.Node{
		Kubernetes: o.Kubernetes, Arch: arch, Token: o.token, Subnet: o.subnet(), SecurityGroup: o.joins.group,
		Labels: o.config.Cluster.Labels(o.Claim, o.Class, o.Choice, o.Kubernetes, o.subnet()), Taints: machine.Taints(o.Claim),
		MaxPods: o.pods(), Reserved: reserved, FreeMemory: free.String(), Kubelet: o.Class.Spec.Kubelet, Driver: bootstrap.DriverOf(o.GPU, o.Class),
	})
}

// Unsupported returns what of a class virtual machines cannot do, "" if nothing: to
// launch one without it would be to ignore what the user asks for.
func Unsupported(class *v1beta1.AKSNodeClass) string {
	spec := &class.Spec
	switch {
	case spec.LinuxOSConfig != nil:
		return "spec.linuxOSConfig"
	case class.StreamsArtifacts():
		return "spec.artifactStreaming"
	case spec.LocalDNS != nil && spec.LocalDNS.Mode == v1beta1.LocalDNSModeRequired:
		return "spec.localDNS of mode Required"
	case spec.Kubelet != nil && spec.Kubelet.CPUCFSQuotaPeriod.Duration != 0 && spec.Kubelet.CPUCFSQuotaPeriod.Duration != usualQuotaPeriod:
		return "spec.kubelet.cpuCFSQuotaPeriod"
	}
	return ""
}
