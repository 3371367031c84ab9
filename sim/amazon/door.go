// SPDX-License-Identifier: Apache-2.0

package amazon

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"karpenter/cloud/aws/client"
)

// behind returns the services with all their calls behind the door.
func behind(s *client.Services, c *life) *client.Services {
	return &client.Services{
		Region: s.Region, EC2: ec2Door{s.EC2, c}, EKS: eksDoor{s.EKS, c}, IAM: iamDoor{s.IAM, c}, Pricing: pricingDoor{s.Pricing, c},
		SQS: sqsDoor{s.SQS, c}, SSM: ssmDoor{s.SSM, c}, ZonalShift: zonalShiftDoor{s.ZonalShift, c},
	}
}

// ec2Door is EC2 behind the door.
type ec2Door struct {
	client.EC2
	*life
}

func (d ec2Door) DescribeInstanceTypes(ctx context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	return through(ctx, d.life, "DescribeInstanceTypes", in, d.EC2.DescribeInstanceTypes)
}

func (d ec2Door) DescribeInstanceTypeOfferings(ctx context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return through(ctx, d.life, "DescribeInstanceTypeOfferings", in, d.EC2.DescribeInstanceTypeOfferings)
}

func (d ec2Door) DescribeSpotPriceHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, _ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return through(ctx, d.life, "DescribeSpotPriceHistory", in, d.EC2.DescribeSpotPriceHistory)
}

func (d ec2Door) DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	return through(ctx, d.life, "DescribeSubnets", in, d.EC2.DescribeSubnets)
}

func (d ec2Door) DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return through(ctx, d.life, "DescribeSecurityGroups", in, d.EC2.DescribeSecurityGroups)
}

func (d ec2Door) DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, _ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return through(ctx, d.life, "DescribeImages", in, d.EC2.DescribeImages)
}

func (d ec2Door) DescribeCapacityReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	return through(ctx, d.life, "DescribeCapacityReservations", in, d.EC2.DescribeCapacityReservations)
}

func (d ec2Door) DescribePlacementGroups(ctx context.Context, in *ec2.DescribePlacementGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
	return through(ctx, d.life, "DescribePlacementGroups", in, d.EC2.DescribePlacementGroups)
}

func (d ec2Door) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return through(ctx, d.life, "DescribeLaunchTemplates", in, d.EC2.DescribeLaunchTemplates)
}

func (d ec2Door) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	return through(ctx, d.life, "CreateLaunchTemplate", in, d.EC2.CreateLaunchTemplate)
}

func (d ec2Door) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error) {
	return through(ctx, d.life, "DeleteLaunchTemplate", in, d.EC2.DeleteLaunchTemplate)
}

func (d ec2Door) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	return through(ctx, d.life, "CreateFleet", in, d.EC2.CreateFleet)
}

func (d ec2Door) RunInstances(ctx context.Context, in *ec2.RunInstancesInput, _ ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	return through(ctx, d.life, "RunInstances", in, d.EC2.RunInstances)
}

func (d ec2Door) CreateTags(ctx context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	return through(ctx, d.life, "CreateTags", in, d.EC2.CreateTags)
}

func (d ec2Door) TerminateInstances(ctx context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	return through(ctx, d.life, "TerminateInstances", in, d.EC2.TerminateInstances)
}

func (d ec2Door) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return through(ctx, d.life, "DescribeInstances", in, d.EC2.DescribeInstances)
}

func (d ec2Door) DescribeInstanceStatus(ctx context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	return through(ctx, d.life, "DescribeInstanceStatus", in, d.EC2.DescribeInstanceStatus)
}

// eksDoor is EKS behind the door.
type eksDoor struct {
	client.EKS
	*life
}

func (d eksDoor) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput, _ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	return through(ctx, d.life, "DescribeCluster", in, d.EKS.DescribeCluster)
}

// iamDoor is IAM behind the door.
type iamDoor struct {
	client.IAM
	*life
}

func (d iamDoor) GetInstanceProfile(ctx context.Context, in *iam.GetInstanceProfileInput, _ ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error) {
	return through(ctx, d.life, "GetInstanceProfile", in, d.IAM.GetInstanceProfile)
}

func (d iamDoor) ListInstanceProfiles(ctx context.Context, in *iam.ListInstanceProfilesInput, _ ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error) {
	return through(ctx, d.life, "ListInstanceProfiles", in, d.IAM.ListInstanceProfiles)
}

func (d iamDoor) CreateInstanceProfile(ctx context.Context, in *iam.CreateInstanceProfileInput, _ ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error) {
	return through(ctx, d.life, "CreateInstanceProfile", in, d.IAM.CreateInstanceProfile)
}

func (d iamDoor) DeleteInstanceProfile(ctx context.Context, in *iam.DeleteInstanceProfileInput, _ ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error) {
	return through(ctx, d.life, "DeleteInstanceProfile", in, d.IAM.DeleteInstanceProfile)
}

func (d iamDoor) AddRoleToInstanceProfile(ctx context.Context, in *iam.AddRoleToInstanceProfileInput, _ ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error) {
	return through(ctx, d.life, "AddRoleToInstanceProfile", in, d.IAM.AddRoleToInstanceProfile)
}

func (d iamDoor) RemoveRoleFromInstanceProfile(ctx context.Context, in *iam.RemoveRoleFromInstanceProfileInput, _ ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	return through(ctx, d.life, "RemoveRoleFromInstanceProfile", in, d.IAM.RemoveRoleFromInstanceProfile)
}

// pricingDoor is Pricing behind the door.
type pricingDoor struct {
	client.Pricing
	*life
}

func (d pricingDoor) GetProducts(ctx context.Context, in *pricing.GetProductsInput, _ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	return through(ctx, d.life, "GetProducts", in, d.Pricing.GetProducts)
}

// sqsDoor is SQS behind the door.
type sqsDoor struct {
	client.SQS
	*life
}

func (d sqsDoor) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return through(ctx, d.life, "GetQueueUrl", in, d.SQS.GetQueueUrl)
}

func (d sqsDoor) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return through(ctx, d.life, "ReceiveMessage", in, d.SQS.ReceiveMessage)
}

func (d sqsDoor) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return through(ctx, d.life, "DeleteMessage", in, d.SQS.DeleteMessage)
}

// ssmDoor is SSM behind the door.
type ssmDoor struct {
	client.SSM
	*life
}

func (d ssmDoor) GetParameter(ctx context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	return through(ctx, d.life, "GetParameter", in, d.SSM.GetParameter)
}

// zonalShiftDoor is ZonalShift behind the door.
type zonalShiftDoor struct {
	client.ZonalShift
	*life
}

func (d zonalShiftDoor) GetManagedResource(ctx context.Context, in *arczonalshift.GetManagedResourceInput, _ ...func(*arczonalshift.Options)) (*arczonalshift.GetManagedResourceOutput, error) {
	return through(ctx, d.life, "GetManagedResource", in, d.ZonalShift.GetManagedResource)
}
