// SPDX-License-Identifier: Apache-2.0

package moto

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"karpenter/cloud/aws/client"
	"karpenter/e2e/harness"
)

// connect returns the SDK's real clients as the controller makes them, talking
// to a moto of the test's own. Each call is tried once.
func connect(t *testing.T) *client.Services {
	t.Helper()
	for _, variable := range append(harness.StartMoto(t).Environment(), "AWS_MAX_ATTEMPTS=1") {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	services, err := client.Connect(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	return services
}

// limit is something that moto does not do as AWS does.
type limit struct {
	what string
	// can returns nil when moto does as AWS does.
	can func(context.Context, *client.Services) error
}

func TestWhatMotoCannotDo(t *testing.T) {
	services := connect(t)
	launch(t, services, "plain", ec2types.DefaultTargetCapacityTypeOnDemand)
	for _, l := range append(refusals(), deviations()...) {
		err := l.can(t.Context(), services)
		_, deviates := errors.AsType[deviation](err)
		switch {
		case err == nil:
			t.Errorf("moto can do it now, so README.md and this table should not say that it cannot: %s", l.what)
		case !deviates && client.Code(err) != "ParameterNotFound" && !client.ServerFault(err):
			t.Errorf("%s: not as the table says: %v", l.what, err)
		default:
			t.Logf("%s: %v", l.what, err)
		}
	}
}

// deviation says what moto does instead.
type deviation string

func (d deviation) Error() string { return string(d) }

func refusals() []limit {
	return []limit{
		{"capacity reservations", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{})
			return err
		}},
		{"placement groups", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{})
			return err
		}},
		{"prices", func(ctx context.Context, s *client.Services) error {
			_, err := s.Pricing.GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")})
			return err
		}},
		{"zonal shift", func(ctx context.Context, s *client.Services) error {
			_, err := s.ZonalShift.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String("arn:aws:eks:us-east-1:123456789012:cluster/c")})
			return err
		}},
		{"AMIs of EKS in SSM", func(ctx context.Context, s *client.Services) error {
			_, err := s.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id")})
			return err
		}},
	}
}

func deviations() []limit {
	unknown := "i-0123456789abcdef0"
	return []limit{
		{"DryRun of DescribeInstanceTypes", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
			return want(client.WouldSucceed(err), "answered %v", err)
		}},
		{"pages of DescribeInstanceTypes", func(ctx context.Context, s *client.Services) error {
			out, err := s.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100)})
			return errors.Join(err, want(err != nil || len(out.InstanceTypes) <= 100, "all of them on a page of 100"))
		}},
		{"spot prices of one zone", func(ctx context.Context, s *client.Services) error {
			out, err := s.EC2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{
				AvailabilityZone: aws.String("us-east-1a"), InstanceTypes: []ec2types.InstanceType{"m5.large"},
			})
			return errors.Join(err, want(err != nil || len(out.SpotPriceHistory) == 1, "those of all zones"))
		}},
		{"malformed IDs of instances", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"nonsense"}})
			return want(client.Code(err) == "InvalidInstanceID.Malformed", "says %v", err)
		}},
		{"the limit of user data", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("long"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{UserData: aws.String(strings.Repeat("aaaa", 20_000))},
			})
			return want(client.UserDataTooLarge(err), "takes 60,000 bytes: %v", err)
		}},
		{"instance profiles of one path", func(ctx context.Context, s *client.Services) error {
			_, err := s.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p"), Path: aws.String("/here/")})
			if err != nil {
				return err
			}
			out, err := s.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/there/")})
			return errors.Join(err, want(err != nil || len(out.InstanceProfiles) == 0, "those of other paths"))
		}},
		{"filters of DescribeInstanceStatus", func(ctx context.Context, s *client.Services) error {
			out, err := s.EC2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{
				Filters: []ec2types.Filter{{Name: aws.String("instance-status.status"), Values: []string{"impaired"}}},
			})
			return errors.Join(err, want(err != nil || len(out.InstanceStatuses) == 0, "shows instances that are well"))
		}},
		{"CreateTags of what is not there", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{unknown}, Tags: []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
			return want(client.NotFound(err), "succeeds")
		}},
		{"the code of DeleteLaunchTemplate by id", func(ctx context.Context, s *client.Services) error {
			_, err := s.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String("lt-0123456789abcdef0")})
			return want(client.Code(err) == "InvalidLaunchTemplateId.NotFound", "says %v", err)
		}},
		{"client tokens of CreateFleet", func(ctx context.Context, s *client.Services) error {
			first, err1 := fleet(ctx, s, "plain", "m5.large", ec2types.DefaultTargetCapacityTypeOnDemand)
			second, err2 := fleet(ctx, s, "plain", "m5.large", ec2types.DefaultTargetCapacityTypeOnDemand)
			return errors.Join(err1, err2, want(err1 != nil || err2 != nil || *first.FleetId == *second.FleetId, "the same token, two fleets"))
		}},
		{"instance types that do not exist", func(ctx context.Context, s *client.Services) error {
			out, err := fleet(ctx, s, "plain", "m99.large", ec2types.DefaultTargetCapacityTypeOnDemand)
			return want(err != nil || len(out.Errors) > 0, "launches an m99.large")
		}},
		{"security groups of the launch template", func(ctx context.Context, s *client.Services) error {
			i, err := instance(ctx, s, ec2types.DefaultTargetCapacityTypeOnDemand)
			return errors.Join(err, want(err != nil || len(i.SecurityGroups) > 0, "the instance has none"))
		}},
		{"instance profiles", func(ctx context.Context, s *client.Services) error {
			i, err := instance(ctx, s, ec2types.DefaultTargetCapacityTypeOnDemand)
			return errors.Join(err, want(err != nil || i.IamInstanceProfile != nil, "the instance has none"))
		}},
		{"ids of spot requests", func(ctx context.Context, s *client.Services) error {
			i, err := instance(ctx, s, ec2types.DefaultTargetCapacityTypeSpot)
			return errors.Join(err, want(err != nil || i.SpotInstanceRequestId != nil, "the instance has none, its lifecycle is %s", i.InstanceLifecycle))
		}},
	}
}

func want(ok bool, otherwise string, args ...any) error {
	if ok {
		return nil
	}
	return deviation(fmt.Sprintf(otherwise, args...))
}

// launch makes the launch template of that name and a fleet of one of it.
func launch(t *testing.T, s *client.Services, name string, capacity ec2types.DefaultTargetCapacityType) *ec2.CreateFleetOutput {
	t.Helper()
	images, err := s.EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"}})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("moto has no images: %v", err)
	}
	groups, err := s.EC2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{})
	if err != nil || len(groups.SecurityGroups) == 0 {
		t.Fatalf("moto has no security groups: %v", err)
	}
	if _, err := s.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name,
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: images.Images[0].ImageId, SecurityGroupIds: []string{*groups.SecurityGroups[0].GroupId},
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")},
		},
	}); err != nil {
		t.Fatal(err)
	}
	out, err := fleet(t.Context(), s, name, "m5.large", capacity)
	if err != nil || len(out.Instances) != 1 {
		t.Fatalf("%v, %v", out, err)
	}
	return out
}

func fleet(ctx context.Context, s *client.Services, template, kind string, capacity ec2types.DefaultTargetCapacityType) (*ec2.CreateFleetOutput, error) {
	subnets, err := s.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		return nil, err
	}
	return s.EC2.CreateFleet(ctx, &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant, ClientToken: aws.String("token"),
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: capacity},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &template, Version: aws.String("$Latest")},
			Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{{
				InstanceType: ec2types.InstanceType(kind), SubnetId: subnets.Subnets[0].SubnetId,
			}},
		}},
	})
}

// instance launches one and describes it.
func instance(ctx context.Context, s *client.Services, capacity ec2types.DefaultTargetCapacityType) (ec2types.Instance, error) {
	out, err := fleet(ctx, s, "plain", "m5.large", capacity)
	if err != nil {
		return ec2types.Instance{}, err
	}
	described, err := s.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: out.Instances[0].InstanceIds})
	if err != nil {
		return ec2types.Instance{}, err
	}
	return described.Reservations[0].Instances[0], nil
}
