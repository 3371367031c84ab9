// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/e2e/harness"
)

// begin starts a control plane for the test, which runs beside others.
func begin(t *testing.T) *harness.Cluster {
	t.Helper()
	t.Parallel()
	return started(t)
}

// started starts a cluster for the test.
func started(t *testing.T) *harness.Cluster {
	t.Helper()
	c, err := harness.Start(t.Context(), harness.Options{Kubelets: true, Args: []string{"--pod-stop-delay=1s"}})
	must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// connect returns the settings with which the SDK's clients take the server for
// AWS.
func connect(t *testing.T, server *harness.Server) aws.Config {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion("us-east-1"), config.WithBaseEndpoint(server.URL),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	must(t, err)
	return cfg
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// furnish gives moto what an EKS user has: a cluster, tagged subnets, the role of
// nodes, a queue. It returns the ID of an image.
func furnish(t *testing.T, moto *harness.Server) string {
	t.Helper()
	cfg, ctx := connect(t, moto), t.Context()
	cloud := ec2.NewFromConfig(cfg)
	subnets, err := cloud.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	must(t, err)
	var ids []string
	for _, s := range subnets.Subnets {
		ids = append(ids, *s.SubnetId)
	}
	_, err = cloud.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: ids, Tags: []ec2types.Tag{{Key: aws.String("karpenter.sh/discovery"), Value: aws.String(cluster)}},
	})
	must(t, err)
	_, err = iam.NewFromConfig(cfg).CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("node"), AssumeRolePolicyDocument: aws.String("{}")})
	must(t, err)
	_, err = sqs.NewFromConfig(cfg).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(cluster)})
	must(t, err)
	_, err = eks.NewFromConfig(cfg).CreateCluster(ctx, &eks.CreateClusterInput{
		Name: aws.String(cluster), RoleArn: aws.String("arn:aws:iam::123456789012:role/cluster"),
		ResourcesVpcConfig:      &ekstypes.VpcConfigRequest{SubnetIds: ids},
		KubernetesNetworkConfig: &ekstypes.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: aws.String("10.100.0.0/16")},
	})
	must(t, err)
	images, err := cloud.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []ec2types.Filter{
		{Name: aws.String("architecture"), Values: []string{"x86_64"}}, {Name: aws.String("name"), Values: []string{"amzn2-ami-hvm-*"}},
	}})
	must(t, err)
	if len(images.Images) == 0 {
		t.Fatal("moto ships no image of Amazon Linux 2")
	}
	return *images.Images[0].ImageId
}

// left tells what of the cluster's is in AWS.
func (s *scene) left() []string {
	s.Helper()
	cfg, ctx := connect(s.T, s.server), s.Context()
	cloud := ec2.NewFromConfig(cfg)
	owned := ec2types.Filter{Name: aws.String("tag:karpenter.k8s.aws/ec2nodeclass"), Values: []string{s.name}}
	var out []string
	instances, err := cloud.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
		owned, {Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped", "shutting-down"}},
	}})
	must(s.T, err)
	for _, r := range instances.Reservations {
		for _, i := range r.Instances {
			out = append(out, *i.InstanceId)
		}
	}
	templates, err := cloud.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{owned}})
	must(s.T, err)
	for _, l := range templates.LaunchTemplates {
		out = append(out, *l.LaunchTemplateName)
	}
	profiles, err := iam.NewFromConfig(cfg).ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	must(s.T, err)
	for _, p := range profiles.InstanceProfiles {
		out = append(out, "instance profile "+*p.InstanceProfileName)
	}
	return out
}

// delete deletes the NodePool and the EC2NodeClass.
func (s *scene) delete() {
	s.Helper()
	for _, kind := range []schema.GroupVersionKind{
		{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}, {Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"},
	} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName(s.name)
		if err := s.Client.Delete(s.Context(), o); err != nil && !apierrors.IsNotFound(err) {
			s.Fatal(err)
		}
	}
}
