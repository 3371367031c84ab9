// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	clocktesting "k8s.io/utils/clock/testing"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/launch"
	"karpenter/model"
)

// simulated is an account of the simulated AWS, and the situation in which its
// subnets, security groups and an image are a class's.
type simulated struct {
	*awsfake.AWS
	services *client.Services
	clock    *clocktesting.FakeClock
	subnet   awsv1.Subnet
	groups   []awsv1.SecurityGroup
	image    string
}

func simulate(t *testing.T) *simulated {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	account, err := awsfake.New(awsfake.Config{Clock: clk, Region: "us-east-1", Cluster: "prod", Types: []string{"m5.large", "m5.xlarge", "p4d.24xlarge"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{AWS: account, services: account.Services(), clock: clk}
	subnets, err := s.services.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("availability-zone", "us-east-1a")}})
	if err != nil {
		t.Fatal(err)
	}
	s.subnet = awsv1.Subnet{ID: *subnets.Subnets[0].SubnetId, Zone: "us-east-1a"}
	groups, err := s.services.EC2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("tag:karpenter.sh/discovery", "prod")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.SecurityGroups {
		s.groups = append(s.groups, awsv1.SecurityGroup{ID: *g.GroupId})
	}
	images, err := s.services.EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{filter("name", "*al2023-x86_64-standard*")}})
	if err != nil {
		t.Fatal(err)
	}
	s.image = *images.Images[0].ImageId
	profile := aws.String("profile-1")
	_, err = s.services.IAM.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: profile})
	if err == nil {
		_, err = s.services.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile, RoleName: aws.String("KarpenterNodeRole-prod")})
	}
	if err != nil {
		t.Fatal(err)
	}
	account.ResetCalls()
	return s
}

// launch makes what a situation needs and starts one instance of each template.
// It returns the template's names.
func (s *simulated) launch(t *testing.T, templates *Templates, want *Want) []string {
	t.Helper()
	made, err := templates.Ensure(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, template := range made {
		names = append(names, template.Name)
		out, err := s.services.EC2.CreateFleet(t.Context(), &ec2.CreateFleetInput{
			Type: types.FleetTypeInstant,
			TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
				TotalTargetCapacity:       aws.Int32(1),
				DefaultTargetCapacityType: types.DefaultTargetCapacityType(launch.Market(template.Candidates, want.CapacityType)),
			},
			LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &template.Name, Version: aws.String("$Latest")},
				Overrides: []types.FleetLaunchTemplateOverridesRequest{{
					InstanceType: types.InstanceType(template.Candidates[0].Type.Name), SubnetId: &s.subnet.ID, ImageId: &template.ImageID,
				}},
			}},
		})
		if err != nil {
			t.Fatalf("fleet of %s: %v", template.Name, err)
		}
		for _, e := range out.Errors {
			t.Errorf("fleet of %s: %s: %s", template.Name, *e.ErrorCode, *e.ErrorMessage)
		}
	}
	return names
}

// TestSimulatedAWS: instances start from the templates of every family, and of a
// reservation; a new leader deletes what is left of them, and the end of a class
// deletes what is left of that.
func TestSimulatedAWS(t *testing.T) {
	s := simulate(t)
	reservation := s.AddReservation(awsfake.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 3})
	known := descriptions(t)
	config := parse(t, "").config(s.services.EC2, nil)
	config.Clock, config.CIDR = s.clock, NewServiceCIDR(s.services.EKS, "prod", s.clock).Get
	templates := New(config)
	var names []string
	for _, text := range []string{
		"class: {spec: {amiFamily: AL2, userData: 'echo hi', associatePublicIPAddress: true, ipPrefixCount: 2}}",
		"{class: {spec: {amiFamily: AL2023, tags: {team: blue}}}, capacityType: spot, types: [m5.large, m5.xlarge]}",
		"class: {spec: {amiFamily: Bottlerocket, instanceStorePolicy: RAID0}}",
		"class: {spec: {amiFamily: Windows2022}}",
		"{class: {metadata: {name: custom}}, types: [p4d.24xlarge], claim: {spec: {resources: {requests: {vpc.amazonaws.com/efa: 1}}}}}",
		"capacityType: reserved",
	} {
		situation := parse(t, text)
		status := &situation.Class.Status
		status.Subnets, status.SecurityGroups, status.AMIs = []awsv1.Subnet{s.subnet}, s.groups, []awsv1.AMI{{ID: s.image}}
		if situation.CapacityType == model.Reserved {
			status.CapacityReservations = []awsv1.CapacityReservation{{ID: reservation, InstanceType: "m5.large", AvailabilityZone: "us-east-1a"}}
		}
		names = append(names, s.launch(t, templates, situation.want(t, known))...)
	}
	if left := len(s.LaunchTemplates()); left != len(names) || left != 7 {
		t.Errorf("%d templates, names %v", left, names)
	}
	instances := s.Instances()
	if len(instances) != len(names) {
		t.Errorf("%d instances", len(instances))
	}

	if err := templates.DeleteAll(context.Background(), "custom"); err != nil {
		t.Fatal(err)
	}
	if left := len(s.LaunchTemplates()); left != len(names)-1 {
		t.Errorf("%d templates without those of a class", left)
	}
	successor := New(config)
	for range 2 {
		if err := successor.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.clock.Step(2 * time.Minute)
	}
	if left := s.LaunchTemplates(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	for operation := range s.Calls() {
		if !slices.Contains([]string{
			"CreateFleet", "DescribeCluster", "DescribeLaunchTemplates", "CreateLaunchTemplate", "DeleteLaunchTemplate",
		}, operation) {
			t.Errorf("called %s", operation)
		}
	}
}
