// SPDX-License-Identifier: Apache-2.0

package moto

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"karpenter/cloud/aws/awsfake/conformance"
)

// seed furnishes moto with the SDK's clients.
type seed struct {
	aws.Config
	vpc string
}

// newSeed makes the VPC that the suite builds in. The environment must lead to
// moto.
func newSeed(t *testing.T) *seed {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vpc, err := ec2.NewFromConfig(cfg).CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.77.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	return &seed{cfg, *vpc.Vpc.VpcId}
}

func tagged(kind ec2types.ResourceType, tags map[string]string) []ec2types.TagSpecification {
	out := ec2types.TagSpecification{ResourceType: kind}
	for key, value := range tags {
		out.Tags = append(out.Tags, ec2types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return []ec2types.TagSpecification{out}
}

func (s *seed) Subnet(ctx context.Context, zone, cidr string, tags map[string]string) (string, error) {
	out, err := ec2.NewFromConfig(s.Config).CreateSubnet(ctx, &ec2.CreateSubnetInput{
		VpcId: &s.vpc, AvailabilityZone: &zone, CidrBlock: &cidr, TagSpecifications: tagged(ec2types.ResourceTypeSubnet, tags),
	})
	if err != nil {
		return "", err
	}
	return *out.Subnet.SubnetId, nil
}

func (s *seed) SecurityGroup(ctx context.Context, name string, tags map[string]string) (string, error) {
	out, err := ec2.NewFromConfig(s.Config).CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: &name, Description: &name, VpcId: &s.vpc, TagSpecifications: tagged(ec2types.ResourceTypeSecurityGroup, tags),
	})
	if err != nil {
		return "", err
	}
	return *out.GroupId, nil
}

func (s *seed) Image(ctx context.Context, name string, architecture ec2types.ArchitectureValues) (string, error) {
	out, err := ec2.NewFromConfig(s.Config).RegisterImage(ctx, &ec2.RegisterImageInput{
		Name: &name, Architecture: architecture, RootDeviceName: aws.String("/dev/xvda"), VirtualizationType: aws.String("hvm"),
	})
	if err != nil {
		return "", err
	}
	return *out.ImageId, nil
}

func (s *seed) Parameter(ctx context.Context, name, value string) error {
	_, err := ssm.NewFromConfig(s.Config).PutParameter(ctx, &ssm.PutParameterInput{Name: &name, Value: &value, Type: ssmtypes.ParameterTypeString})
	return err
}

func (s *seed) Role(ctx context.Context, name string) error {
	_, err := iam.NewFromConfig(s.Config).CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String("{}")})
	return err
}

func (s *seed) Queue(ctx context.Context, name string) error {
	_, err := sqs.NewFromConfig(s.Config).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
	return err
}

func (s *seed) Send(ctx context.Context, queue, body string) error {
	c := sqs.NewFromConfig(s.Config)
	url, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil {
		return err
	}
	_, err = c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: &body})
	return err
}

// moto passes the checks that AWS in memory passes, but for what README.md says
// it does otherwise.
func TestConformance(t *testing.T) {
	services := connect(t)
	conformance.Run(t, services, newSeed(t), conformance.Skips{
		"pages are no longer than asked for":                    "moto answers with one page of all instance types",
		"a dry run of DescribeInstanceTypes would succeed":      "moto answers it",
		"spot prices of one zone":                               "moto ignores the zone",
		"images have an architecture":                           "moto forgets that of a registered image",
		"instance IDs must be well formed":                      "moto says that they don't exist",
		"the ID of a launch template must exist":                "moto says that the name does not exist",
		"user data is limited":                                  "moto takes any",
		"spot instances name their request":                     "moto's don't",
		"instances have the security groups of their template":  "moto's have none",
		"instances have the instance profile of their template": "moto's have none",
		"a fleet with the same client token is launched once":   "moto ignores client tokens",
		"a fleet of an instance type that is not there":         "moto launches it",
		"tags of what is not there":                             "moto ignores them",
		"instances that are well are not impaired":              "moto ignores the filters of DescribeInstanceStatus",
		"instance profiles are listed by path":                  "moto ignores the path",
	})
}
