// SPDX-License-Identifier: Apache-2.0

package template

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "karpenter/api/aws/v1"
)

// disks are those of the class, or of its family.
func disks(class *awsv1.EC2NodeClass) []types.LaunchTemplateBlockDeviceMappingRequest {
	wanted := class.Spec.BlockDeviceMappings
	if len(wanted) == 0 {
		wanted = class.AMIFamily().Disks()
	}
	var out []types.LaunchTemplateBlockDeviceMappingRequest
	for _, d := range wanted {
		out = append(out, types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: d.DeviceName, Ebs: volume(d.EBS)})
	}
	return out
}

func volume(d *awsv1.BlockDevice) *types.LaunchTemplateEbsBlockDeviceRequest {
	if d == nil {
		return nil
	}
	out := &types.LaunchTemplateEbsBlockDeviceRequest{
		DeleteOnTermination:      d.DeleteOnTermination,
		Encrypted:                d.Encrypted,
		Iops:                     positive(d.IOPS),
		KmsKeyId:                 d.KMSKeyID,
		SnapshotId:               d.SnapshotID,
		Throughput:               positive(d.Throughput),
		VolumeInitializationRate: d.VolumeInitializationRate,
		VolumeType:               types.VolumeType(aws.ToString(d.VolumeType)),
	}
	if size := d.VolumeSize; size != nil {
		const gibibyte = 1 << 30
		out.VolumeSize = aws.Int32(int32((size.Value() + gibibyte - 1) / gibibyte))
	}
	return out
}

// positive leaves out what is 0, which EC2 refuses.
func positive(n *int64) *int32 {
	if aws.ToInt64(n) == 0 {
		return nil
	}
	return aws.Int32(int32(*n))
}

// nic is a network interface as EC2 is asked for it.
type nic = types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest

// interfaces are those the class lists, or one for each EFA that is asked for,
// or one.
func (c *content) interfaces() []nic {
	if listed := c.want.Class.Spec.NetworkInterfaces; len(listed) > 0 {
		var out []nic
		for _, i := range listed {
			n := c.nic(i.InterfaceType != awsv1.InterfaceTypeEFAOnly)
			n.NetworkCardIndex, n.DeviceIndex = aws.Int32(i.NetworkCardIndex), aws.Int32(i.DeviceIndex)
			n.InterfaceType = aws.String(string(i.InterfaceType))
			out = append(out, n)
		}
		return out
	}
	var out []nic
	for card := range c.efa {
		n := c.nic(true)
		n.NetworkCardIndex, n.DeviceIndex = aws.Int32(int32(card)), aws.Int32(int32(min(card, 1)))
		n.InterfaceType = aws.String("efa")
		out = append(out, n)
	}
	if len(out) == 0 {
		n := c.nic(true)
		n.DeviceIndex = aws.Int32(0)
		out = append(out, n)
	}
	return out
}

// nic returns an interface without its place. One without IP addresses has
// nothing but its security groups.
func (c *content) nic(addresses bool) nic {
	class := c.want.Class
	var out nic
	for _, group := range class.Status.SecurityGroups {
		out.Groups = append(out.Groups, group.ID)
	}
	if !addresses {
		return out
	}
	out.AssociatePublicIpAddress = class.Spec.AssociatePublicIPAddress
	if c.isIPv6() {
		out.Ipv6PrefixCount = class.Spec.IPPrefixCount
		out.Ipv6AddressCount = aws.Int32(1)
		out.PrimaryIpv6 = aws.Bool(true)
	} else {
		out.Ipv4PrefixCount = class.Spec.IPPrefixCount
	}
	if t := class.Spec.ConnectionTracking; t != nil && (t.TCPEstablishedTimeout != nil || t.UDPStreamTimeout != nil || t.UDPTimeout != nil) {
		out.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: t.TCPEstablishedTimeout, UdpStreamTimeout: t.UDPStreamTimeout, UdpTimeout: t.UDPTimeout,
		}
	}
	return out
}
