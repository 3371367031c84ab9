// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// imageGiB is the size of the root volume of EKS's images.
const imageGiB = 20

// attach gives a new instance its volumes: those of the template, and the root
// volume where the template has none.
func (a *AWS) attach(i *instance, w *want) {
	disks := map[string]types.LaunchTemplateEbsBlockDeviceRequest{aws.ToString(i.RootDeviceName): {}}
	for _, mapping := range w.template.data.BlockDeviceMappings {
		if mapping.Ebs != nil {
			disks[aws.ToString(mapping.DeviceName)] = *mapping.Ebs
		}
	}
	for _, device := range slices.Sorted(maps.Keys(disks)) {
		disk := disks[device]
		id := a.id("vol")
		i.volumes = append(i.volumes, types.Volume{
			VolumeId: &id, Size: aws.Int32(cmp.Or(aws.ToInt32(disk.VolumeSize), imageGiB)), VolumeType: cmp.Or(disk.VolumeType, types.VolumeTypeGp2),
			Iops: disk.Iops, Throughput: disk.Throughput, AvailabilityZone: w.subnet.AvailabilityZone, State: types.VolumeStateInUse, CreateTime: i.LaunchTime,
			Attachments: []types.VolumeAttachment{{InstanceId: i.InstanceId, VolumeId: &id, Device: &device, State: types.VolumeAttachmentStateAttached, AttachTime: i.LaunchTime}},
		})
		i.BlockDeviceMappings = append(i.BlockDeviceMappings, types.InstanceBlockDeviceMapping{
			DeviceName: &device,
			Ebs:        &types.EbsInstanceBlockDevice{VolumeId: &id, Status: types.AttachmentStatusAttached, AttachTime: i.LaunchTime, DeleteOnTermination: aws.Bool(true)},
		})
	}
	first := w.interfaces()[0]
	i.public = aws.ToBool(w.subnet.MapPublicIpOnLaunch)
	if first.AssociatePublicIpAddress != nil {
		i.public = *first.AssociatePublicIpAddress
	}
}

// besides is what the account pays per hour for the volumes and the address of an
// instance, in dollars.
func (a *AWS) besides(i *instance) float64 {
	const hoursPerMonth = 730
	prices, sum := a.market.extras, 0.0
	for _, v := range i.volumes {
		price := prices.Volumes[string(v.VolumeType)]
		_, operations := price.ProvisionedIOPS(string(v.VolumeType), int64(aws.ToInt32(v.Iops)))
		_, throughput := price.ProvisionedThroughput(int64(aws.ToInt32(v.Throughput)))
		sum += float64(aws.ToInt32(v.Size))*price.GiB/hoursPerMonth + operations.Dollars() + throughput.Dollars()
	}
	if i.public {
		sum += prices.PublicIPv4
	}
	return sum
}

// DescribeVolumes describes the volumes of instances that have not ended.
func (e ec2API) DescribeVolumes(ctx context.Context, in *ec2.DescribeVolumesInput, _ ...func(*ec2.Options)) (*ec2.DescribeVolumesOutput, error) {
	return answer(ctx, e.a, "DescribeVolumes", in, func(now time.Time) (*ec2.DescribeVolumesOutput, error) {
		if len(in.Filters) > 0 {
			return nil, refuse("InvalidParameterValue", "The simulation filters no volumes; ask for them by their IDs.")
		}
		missing := slices.Clone(in.VolumeIds)
		out := &ec2.DescribeVolumesOutput{}
		for _, i := range e.a.instances.seenAt(now) {
			for _, v := range i.volumes {
				if len(in.VolumeIds) > 0 && !slices.Contains(in.VolumeIds, *v.VolumeId) {
					continue
				}
				missing = slices.DeleteFunc(missing, func(id string) bool { return id == *v.VolumeId })
				out.Volumes = append(out.Volumes, copied(v))
			}
		}
		if len(missing) > 0 {
			return nil, doNotExist("InvalidVolume.NotFound", "volume", missing)
		}
		return out, nil
	})
}

// DescribeInstanceAttribute tells the user data of an instance.
func (e ec2API) DescribeInstanceAttribute(ctx context.Context, in *ec2.DescribeInstanceAttributeInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceAttributeOutput, error) {
	return answer(ctx, e.a, "DescribeInstanceAttribute", in, func(now time.Time) (*ec2.DescribeInstanceAttributeOutput, error) {
		if in.Attribute != types.InstanceAttributeNameUserData {
			return nil, refuse("InvalidParameterValue", "The simulation tells no attribute of instances but userData.")
		}
		found, err := e.a.instances.find([]string{aws.ToString(in.InstanceId)}, now)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeInstanceAttributeOutput{InstanceId: aws.String(*in.InstanceId), UserData: &types.AttributeValue{}}
		if data := found[0].userData; data != "" {
			out.UserData.Value = &data
		}
		return out, nil
	})
}
