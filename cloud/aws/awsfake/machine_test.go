// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/base64"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

func TestInstancesKnowTheirUserDataAndVolumes(t *testing.T) {
	l := newLab(t, nil)
	l.template("disks", func(d *types.RequestLaunchTemplateData) {
		d.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("hello")))
		d.BlockDeviceMappings = []types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String("/dev/xvdb"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(100)}},
		}
	})
	in := l.request(OnDemand, 1, l.override("m5.large", 0))
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("disks")
	id := l.fleet(in, "m5.large a +").Instances[0].InstanceIds[0]
	told, err := l.EC2.(ec2API).DescribeInstanceAttribute(t.Context(), &ec2.DescribeInstanceAttributeInput{InstanceId: &id, Attribute: types.InstanceAttributeNameUserData})
	l.must(err)
	if got := aws.ToString(told.UserData.Value); got != base64.StdEncoding.EncodeToString([]byte("hello")) {
		t.Errorf("user data %q", got)
	}
	described, err := l.EC2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	l.must(err)
	var ids []string
	for _, b := range described.Reservations[0].Instances[0].BlockDeviceMappings {
		ids = append(ids, *b.Ebs.VolumeId)
	}
	volumes, err := l.EC2.(ec2API).DescribeVolumes(t.Context(), &ec2.DescribeVolumesInput{VolumeIds: ids})
	l.must(err)
	sizes := map[string]int32{}
	for _, v := range volumes.Volumes {
		sizes[*v.Attachments[0].Device] = *v.Size
	}
	if diff := cmp.Diff(map[string]int32{"/dev/xvda": 20, "/dev/xvdb": 100}, sizes); diff != "" {
		t.Error(diff)
	}
	_, err = l.EC2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	l.must(err)
	_, err = l.EC2.(ec2API).DescribeVolumes(t.Context(), &ec2.DescribeVolumesInput{VolumeIds: ids})
	l.refused(err, "InvalidVolume.NotFound")
}

func TestSeedsGiveOtherIdentifiers(t *testing.T) {
	one, other := newLab(t, nil), newLab(t, func(c *Config) { c.Seed = 1 })
	if *one.private[0].SubnetId == *other.private[0].SubnetId {
		t.Errorf("both are %s", *one.private[0].SubnetId)
	}
}
