// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

func fleets() []check {
	return []check{
		{"a fleet launches as many instances as asked for", fleetLaunches},
		{"a fleet of spot instances", fleetSpot},
		{"spot instances name their request", func(s *suite) {
			s.template("spot-request", nil)
			if i := s.launchOne("spot-request", types.DefaultTargetCapacityTypeSpot); aws.ToString(i.SpotInstanceRequestId) == "" {
				s.Error("the instance does not")
			}
		}},
		{"instances have the security groups of their template", func(s *suite) {
			s.template("groups", nil)
			i := s.launchOne("groups", types.DefaultTargetCapacityTypeOnDemand)
			if len(i.SecurityGroups) != 1 || *i.SecurityGroups[0].GroupId != s.group {
				s.Errorf("%+v", i.SecurityGroups)
			}
		}},
		{"instances have the instance profile of their template", fleetProfile},
		{"a fleet with the same client token is launched once", fleetOnce},
		{"a dry run of a fleet would succeed and launches nothing", fleetDryRun},
		{"a fleet of a launch template that is not there", func(s *suite) {
			_, err := s.EC2.CreateFleet(s.Context(), s.fleet("nobody", types.DefaultTargetCapacityTypeOnDemand, 1))
			s.refused(err, "InvalidLaunchTemplateName.NotFoundException")
		}},
		{"a fleet of an instance type that is not there", func(s *suite) {
			s.template("no-type", nil)
			in := s.fleet("no-type", types.DefaultTargetCapacityTypeOnDemand, 1)
			in.LaunchTemplateConfigs[0].Overrides[0].InstanceType = "m99.large"
			out, err := s.EC2.CreateFleet(s.Context(), in)
			if err == nil && (len(out.Instances) > 0 || len(out.Errors) == 0) {
				s.Errorf("%+v", out)
			}
		}},
		{"a fleet takes addresses of its subnet until its instances end", fleetAddresses},
		{"a dry run of RunInstances would succeed", func(s *suite) {
			s.template("run", nil)
			_, err := s.EC2.RunInstances(s.Context(), &ec2.RunInstancesInput{
				DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
				LaunchTemplate:    &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name("run")), Version: aws.String("$Latest")},
				NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: &s.subnets[0], Groups: []string{s.group}}},
			})
			s.refused(err, "DryRunOperation")
		}},
	}
}

// fleet asks for m5.large in the first subnet, by the template of that name,
// which is also the value of a tag of its instances.
func (s *suite) fleet(template string, way types.DefaultTargetCapacityType, n int32) *ec2.CreateFleetInput {
	list := tags("conformance", template, "karpenter.sh/nodepool", "default")
	return &ec2.CreateFleetInput{
		Type:                        types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: &n, DefaultTargetCapacityType: way},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(name(template)), Version: aws.String("$Latest")},
			Overrides: []types.FleetLaunchTemplateOverridesRequest{{
				InstanceType: types.InstanceTypeM5Large, SubnetId: &s.subnets[0], AvailabilityZone: &s.zones[0], ImageId: &s.image, Priority: aws.Float64(0.1),
			}},
		}},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: list}, {ResourceType: types.ResourceTypeVolume, Tags: list}, {ResourceType: types.ResourceTypeFleet, Tags: list},
		},
	}
}

// launch starts instances and returns their IDs.
func (s *suite) launch(in *ec2.CreateFleetInput) []string {
	s.Helper()
	out, err := s.EC2.CreateFleet(s.Context(), in)
	s.must(err)
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
		o := i.LaunchTemplateAndOverrides
		if i.InstanceType != types.InstanceTypeM5Large || o == nil || o.Overrides == nil || o.Overrides.InstanceType != types.InstanceTypeM5Large || aws.ToString(o.Overrides.SubnetId) != s.subnets[0] {
			s.Errorf("%+v does not say what was launched where: %+v", i, o)
		}
	}
	if want := int(*in.TargetCapacitySpecification.TotalTargetCapacity); len(ids) != want || len(out.Errors) != 0 || aws.ToString(out.FleetId) == "" {
		s.Fatalf("%d instances, want %d: %+v", len(ids), want, out)
	}
	s.Cleanup(func() { s.end(ids) })
	return ids
}

// end terminates what is left of the instances of a check, which has ended.
func (s *suite) end(ids []string) {
	ctx := context.WithoutCancel(s.Context())
	if _, err := s.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		s.Errorf("clearing up: %v", err)
	}
}

func (s *suite) launchOne(template string, way types.DefaultTargetCapacityType) types.Instance {
	s.Helper()
	return s.describe(s.launch(s.fleet(template, way, 1))...)[0]
}

func (s *suite) describe(ids ...string) []types.Instance {
	s.Helper()
	out, err := s.EC2.DescribeInstances(s.Context(), &ec2.DescribeInstancesInput{InstanceIds: ids})
	s.must(err)
	var found []types.Instance
	for _, r := range out.Reservations {
		found = append(found, r.Instances...)
	}
	if len(found) != len(ids) {
		s.Fatalf("%d instances described, want %d", len(found), len(ids))
	}
	return found
}

func fleetLaunches(s *suite) {
	s.template("three", nil)
	for _, i := range s.describe(s.launch(s.fleet("three", types.DefaultTargetCapacityTypeOnDemand, 3))...) {
		if i.InstanceType != types.InstanceTypeM5Large || aws.ToString(i.SubnetId) != s.subnets[0] || aws.ToString(i.Placement.AvailabilityZone) != s.zones[0] ||
			aws.ToString(i.ImageId) != s.image || i.LaunchTime == nil || aws.ToString(i.PrivateIpAddress) == "" || aws.ToString(i.PrivateDnsName) == "" {
			s.Errorf("%+v", i)
		}
		if valueOf(i.Tags, "karpenter.sh/nodepool") != "default" || valueOf(i.Tags, "conformance") != "three" {
			s.Errorf("tags %v", i.Tags)
		}
		if !slices.Contains([]types.InstanceStateName{types.InstanceStateNamePending, types.InstanceStateNameRunning}, i.State.Name) {
			s.Errorf("state %s", i.State.Name)
		}
	}
}

func fleetSpot(s *suite) {
	s.template("spot", nil)
	in := s.fleet("spot", types.DefaultTargetCapacityTypeSpot, 2)
	in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	for _, i := range s.describe(s.launch(in)...) {
		if i.InstanceLifecycle != types.InstanceLifecycleTypeSpot {
			s.Errorf("lifecycle %q", i.InstanceLifecycle)
		}
	}
}

func fleetProfile(s *suite) {
	const profile = "conformance-launch"
	s.must(s.seed.Role(s.Context(), "conformance-launch"))
	_, err := s.IAM.CreateInstanceProfile(s.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(profile)})
	s.must(err)
	_, err = s.IAM.AddRoleToInstanceProfile(s.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(profile), RoleName: aws.String("conformance-launch")})
	s.must(err)
	s.template("profile", func(d *types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(profile)}
	})
	i := s.launchOne("profile", types.DefaultTargetCapacityTypeOnDemand)
	if i.IamInstanceProfile == nil || aws.ToString(i.IamInstanceProfile.Arn) == "" {
		s.Errorf("%+v", i.IamInstanceProfile)
	}
}

func fleetOnce(s *suite) {
	s.template("once", nil)
	in := s.fleet("once", types.DefaultTargetCapacityTypeOnDemand, 1)
	in.ClientToken = aws.String("conformance-once")
	first := s.launch(in)
	again, err := s.EC2.CreateFleet(s.Context(), in)
	s.must(err)
	if len(again.Instances) != 1 || !slices.Equal(again.Instances[0].InstanceIds, first) {
		s.Errorf("first %v, then %+v", first, again.Instances)
	}
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(2)
	_, err = s.EC2.CreateFleet(s.Context(), in)
	s.refused(err, "IdempotentParameterMismatch")
}

func fleetDryRun(s *suite) {
	s.template("dry", nil)
	in := s.fleet("dry", types.DefaultTargetCapacityTypeOnDemand, 1)
	in.DryRun = aws.Bool(true)
	_, err := s.EC2.CreateFleet(s.Context(), in)
	s.refused(err, "DryRunOperation")
	out, err := s.EC2.DescribeInstances(s.Context(), &ec2.DescribeInstancesInput{Filters: filters("tag:conformance", "dry")})
	s.must(err)
	if len(out.Reservations) != 0 {
		s.Errorf("%d instances", len(out.Reservations))
	}
}

func fleetAddresses(s *suite) {
	s.template("addresses", nil)
	free := func() int32 {
		out, err := s.EC2.DescribeSubnets(s.Context(), &ec2.DescribeSubnetsInput{SubnetIds: s.subnets[:1]})
		s.must(err)
		return *out.Subnets[0].AvailableIpAddressCount
	}
	before := free()
	s.launch(s.fleet("addresses", types.DefaultTargetCapacityTypeOnDemand, 2))
	if after := free(); after != before-2 {
		s.Errorf("%d addresses free before, %d after", before, after)
	}
}
