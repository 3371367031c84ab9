// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/userdata"
	"karpenter/model"
)

// Prefix is what the names of templates begin with.
const Prefix = awsv1.Group + "/"

// content is a template in the making.
type content struct {
	config *Config
	want   *Want
	*variant
	cidr string // of Services
}

// draft is a template that may not be in EC2 yet.
type draft struct {
	Template
	class    string
	input    *ec2.CreateLaunchTemplateInput
	userData userdata.Data
}

// draft works the template out. It depends on nothing but c.
func (c *content) draft() (*draft, error) {
	written, err := c.userData()
	if err != nil {
		return nil, err
	}
	tags := Tags(launch.Tags(c.config.Cluster.Name, c.want.Claim, c.want.Class))
	input := &ec2.CreateLaunchTemplateInput{
		LaunchTemplateData: c.data(written, tags),
		TagSpecifications:  []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags}},
	}
	name, err := nameOf(input)
	if err != nil {
		return nil, err
	}
	input.LaunchTemplateName = &name
	return &draft{
		Template: Template{Name: name, ImageID: c.image, ReservationID: c.reservation, Candidates: c.candidates},
		class:    c.want.Class.Name, input: input, userData: written,
	}, nil
}

// nameOf hashes what the template holds.
func nameOf(input *ec2.CreateLaunchTemplateInput) (string, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("naming a launch template: %w", err)
	}
	sum := sha256.Sum256(text)
	return Prefix + strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 10), nil
}

// Tags returns the tags in the form of EC2, sorted.
func Tags(tags map[string]string) []types.Tag {
	var out []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}

func (c *content) userData() (userdata.Data, error) {
	cluster := c.config.Cluster
	cluster.CIDR = c.cidr
	class, claim := c.want.Class, c.want.Claim
	return userdata.Render(&userdata.Machine{
		Family:         class.AMIFamily(),
		Custom:         aws.ToString(class.Spec.UserData),
		Cluster:        &cluster,
		CapacityType:   c.want.CapacityType,
		Labels:         claim.Labels,
		Taints:         karpenterv1.CoreTaints(slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints)),
		Kubelet:        class.Spec.Kubelet,
		MaxPods:        c.pods,
		KubeReserved:   c.kubeReserved,
		SystemReserved: c.systemReserved,
		RAID0:          class.Spec.InstanceStorePolicy != nil && *class.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
		Version:        userdata.BottlerocketVersion(class),
	})
}

func (c *content) data(written userdata.Data, tags []types.Tag) *types.RequestLaunchTemplateData {
	class := c.want.Class
	enclaves := class.Spec.EnclaveOptions != nil && class.Spec.EnclaveOptions.Enabled
	out := &types.RequestLaunchTemplateData{
		ImageId:             aws.String(c.image),
		IamInstanceProfile:  &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(class.Status.InstanceProfile)},
		Monitoring:          &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(aws.ToBool(class.Spec.DetailedMonitoring))},
		BlockDeviceMappings: disks(class),
		MetadataOptions:     c.metadata(),
		NetworkInterfaces:   c.interfaces(),
		Placement:           c.placement(),
		EnclaveOptions:      &types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(enclaves)},
		TagSpecifications:   []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}},
	}
	if written.Text != "" {
		out.UserData = aws.String(written.Encoded())
	}
	if o := class.Spec.CPUOptions; o != nil && o.NestedVirtualization != nil {
		out.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: types.NestedVirtualizationSpecification(*o.NestedVirtualization),
		}
	}
	if c.want.CapacityType == model.Spot {
		out.TagSpecifications = append(out.TagSpecifications,
			types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: tags})
	}
	if c.config.ReservedCapacity {
		out.CapacityReservationSpecification = c.reservations()
		if c.market != "" {
			out.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketType(c.market)}
		}
	}
	return out
}

// reservations keeps instances out of reservations no one named, which would
// take what others have paid for.
func (c *content) reservations() *types.LaunchTemplateCapacityReservationSpecificationRequest {
	if c.reservation == "" {
		return &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceNone,
		}
	}
	return &types.LaunchTemplateCapacityReservationSpecificationRequest{
		CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
		CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: aws.String(c.reservation)},
	}
}

func (c *content) placement() *types.LaunchTemplatePlacementRequest {
	out := &types.LaunchTemplatePlacementRequest{Tenancy: types.Tenancy(c.want.Tenancy)}
	if c.want.GroupID != "" {
		out.GroupId = aws.String(c.want.GroupID)
	}
	if n, err := strconv.ParseInt(c.want.Partition, 10, 32); err == nil && n != 0 {
		out.PartitionNumber = aws.Int32(int32(n))
	}
	return out
}

// isIPv6 reports whether the cluster's addresses are.
func (c *content) isIPv6() bool {
	address, err := netip.ParseAddr(c.config.Cluster.DNS)
	return err == nil && address.Is6()
}

// metadata are the class's options; where there are none, as in objects that no
// API server has seen, the service is off.
func (c *content) metadata() *types.LaunchTemplateInstanceMetadataOptionsRequest {
	o := c.want.Class.Spec.MetadataOptions
	if o == nil {
		o = &awsv1.MetadataOptions{
			HTTPEndpoint: aws.String("disabled"), HTTPProtocolIPv6: aws.String("disabled"),
			HTTPPutResponseHopLimit: aws.Int64(2), HTTPTokens: aws.String("required"),
		}
		if c.isIPv6() {
			o.HTTPProtocolIPv6 = aws.String("enabled")
		}
	}
	out := &types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:         types.LaunchTemplateInstanceMetadataEndpointState(aws.ToString(o.HTTPEndpoint)),
		HttpProtocolIpv6:     types.LaunchTemplateInstanceMetadataProtocolIpv6(aws.ToString(o.HTTPProtocolIPv6)),
		HttpTokens:           types.LaunchTemplateHttpTokensState(aws.ToString(o.HTTPTokens)),
		InstanceMetadataTags: types.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
	if hops := o.HTTPPutResponseHopLimit; hops != nil {
		out.HttpPutResponseHopLimit = aws.Int32(int32(*hops))
	}
	switch c.config.Region {
	case "us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-south-1", "us-isof-east-1":
		out.HttpProtocolIpv6 = "" // EC2 knows no such option there
	}
	return out
}
