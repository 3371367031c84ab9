// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// What the getting-started guides of EKS leave behind is there.
func TestDefaultWorld(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	subnets, err := l.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filters("tag:karpenter.sh/discovery", "cluster")})
	l.must(err)
	var got []string
	for _, s := range subnets.Subnets {
		got = append(got, fmt.Sprint(*s.AvailabilityZone, " ", *s.AvailabilityZoneId, " ", *s.MapPublicIpOnLaunch, " ", *s.AvailableIpAddressCount))
	}
	want := []string{
		"us-west-2a usw2-az2 true 8187", "us-west-2a usw2-az2 false 8187", "us-west-2b usw2-az3 true 8187",
		"us-west-2b usw2-az3 false 8187", "us-west-2c usw2-az1 true 8187", "us-west-2c usw2-az1 false 8187",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	all, err := l.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
	l.must(err)
	groups, err := l.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: filters("tag:karpenter.sh/discovery", "cluster")})
	l.must(err)
	if len(all.SecurityGroups) != 3 || len(groups.SecurityGroups) != 2 {
		t.Errorf("%d security groups, %d to be discovered", len(all.SecurityGroups), len(groups.SecurityGroups))
	}
	cluster, err := l.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("cluster")})
	l.must(err)
	if c := cluster.Cluster; *c.Version != "1.33" || *c.KubernetesNetworkConfig.ServiceIpv4Cidr != "10.100.0.0/16" || *c.Arn != "arn:aws:eks:us-west-2:111122223333:cluster/cluster" {
		t.Errorf("%+v", c)
	}
	_, err = l.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("other")})
	l.refused(err, "ResourceNotFoundException")
	url, err := l.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("cluster")})
	l.must(err)
	if *url.QueueUrl != "https://sqs.us-west-2.amazonaws.com/111122223333/cluster" {
		t.Error(*url.QueueUrl)
	}
}

func TestConfigMustBeRight(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	for want, config := range map[string]Config{
		"Config.Clock":       {},
		"m9.huge":            {Clock: clock, Types: []string{"m9.huge"}},
		"is not like 1.33":   {Clock: clock, KubernetesVersion: "latest", Types: []string{"m5.large"}},
		"Kubernetes version": {Clock: clock, KubernetesVersion: "1", Types: []string{"m5.large"}},
	} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want something about %s", err, want)
		}
	}
}

func TestRegionCode(t *testing.T) {
	for region, want := range map[string]string{
		"us-west-2": "usw2", "us-east-1": "use1", "eu-central-1": "euc1", "ap-southeast-2": "apse2", "ap-northeast-1": "apne1", "us-gov-west-1": "usgw1",
	} {
		if got := regionCode(region); got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}

// parameter returns the name of the image that an SSM parameter leads to.
func (l *lab) imageBehind(parameter string) string {
	l.Helper()
	out, err := l.SSM.GetParameter(l.Context(), &ssm.GetParameterInput{Name: &parameter})
	l.must(err)
	images, err := l.EC2.DescribeImages(l.Context(), &ec2.DescribeImagesInput{Filters: filters("image-id", *out.Parameter.Value), IncludeDeprecated: aws.Bool(true)})
	l.must(err)
	return *images.Images[0].Name + " " + string(images.Images[0].Architecture) + " " + *images.Images[0].OwnerId
}

func TestReleasedImages(t *testing.T) {
	l := newLab(t, func(c *Config) { c.KubernetesVersion = "1.32" })
	eks, bottlerocket := "/aws/service/eks/optimized-ami/1.32/", "/aws/service/bottlerocket/aws-k8s-1.32"
	for parameter, want := range map[string]string{
		eks + "amazon-linux-2/recommended/image_id":                                                               "amazon-eks-node-1.32-v20261111 x86_64 602401143452",
		eks + "amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20261007/image_id":                                "amazon-eks-arm64-node-1.32-v20261007 arm64 602401143452",
		eks + "amazon-linux-2-gpu/recommended/image_id":                                                           "amazon-eks-gpu-node-1.32-v20261111 x86_64 602401143452",
		eks + "amazon-linux-2023/x86_64/standard/recommended/image_id":                                            "amazon-eks-node-al2023-x86_64-standard-1.32-v20261111 x86_64 602401143452",
		eks + "amazon-linux-2023/x86_64/neuron/recommended/image_id":                                              "amazon-eks-node-al2023-x86_64-neuron-1.32-v20261111 x86_64 602401143452",
		eks + "amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.32-v20261007/image_id":        "amazon-eks-node-al2023-arm64-nvidia-1.32-v20261007 arm64 602401143452",
		bottlerocket + "/arm64/1.45.0/image_id":                                                                   "bottlerocket-aws-k8s-1.32-arm64-v1.45.0-???????? arm64 092701018921",
		bottlerocket + "-nvidia/x86_64/latest/image_id":                                                           "bottlerocket-aws-k8s-1.32-nvidia-x86_64-v1.46.0-???????? x86_64 092701018921",
		"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.32/image_id":            "Windows_Server-2022-English-Core-EKS_Optimized-1.32-2026.11.11 x86_64 801119661308",
		"arn:aws:ssm:us-west-2::parameter/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id": "amazon-eks-node-1.32-v20261111 x86_64 602401143452",
	} {
		if got := l.imageBehind(parameter); !wildcard(want, got) {
			t.Errorf("%s: %s, want %s", parameter, got, want)
		}
	}
	missing := "/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.32/image_id"
	_, err := l.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &missing})
	l.refused(err, "ParameterNotFound")

	l.must(l.ReleaseImages("1.35", l.clock.Now(), "v1.50.0"))
	for _, parameter := range []string{
		"/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id",
		"/aws/service/bottlerocket/aws-k8s-1.35/x86_64/1.50.0/image_id",
	} {
		l.imageBehind(parameter)
	}
	gone := "/aws/service/eks/optimized-ami/1.35/amazon-linux-2/recommended/image_id"
	_, err = l.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &gone})
	l.refused(err, "ParameterNotFound")
}

func TestImages(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	own := l.AddImage(Image{Name: "golden-1", Architecture: types.ArchitectureValuesArm64, Tags: tags("team", "a")})
	count := func(in *ec2.DescribeImagesInput) int {
		out, err := l.EC2.DescribeImages(ctx, in)
		l.must(err)
		return len(out.Images)
	}
	if count(&ec2.DescribeImagesInput{Owners: []string{"self"}}) != 1 || count(&ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: filters("tag:team", "a", "architecture", "arm64")}) != 1 {
		t.Error("my own image is not found")
	}
	if n, m := count(&ec2.DescribeImagesInput{Owners: []string{"amazon"}}), count(&ec2.DescribeImagesInput{}); n != m-1 {
		t.Errorf("%d images of Amazon, %d of all", n, m)
	}
	foreign := l.AddImage(Image{Name: "old", Owner: "999999999999", Deprecated: l.clock.Now()})
	if count(&ec2.DescribeImagesInput{ImageIds: []string{foreign}}) != 0 || count(&ec2.DescribeImagesInput{ImageIds: []string{foreign}, IncludeDeprecated: aws.Bool(true)}) != 1 {
		t.Error("a deprecated image is to be seen only when asked for")
	}
	l.DeprecateImage(own, l.clock.Now())
	if count(&ec2.DescribeImagesInput{ImageIds: []string{own}}) != 1 {
		t.Error("owners see their deprecated images")
	}
	l.RemoveImage(own)
	_, err := l.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{own}})
	l.refused(err, "InvalidAMIID.NotFound")
	_, err = l.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{"x"}})
	l.refused(err, "InvalidAMIID.Malformed")
}

func TestZonesOfOtherRegions(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Region = "eu-west-1" })
	out, err := l.EC2.DescribeInstanceTypeOfferings(t.Context(), &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZoneId, Filters: filters("instance-type", "m5.*")})
	l.must(err)
	if len(out.InstanceTypeOfferings) != 9 || *out.InstanceTypeOfferings[0].Location != "euw1-az2" {
		t.Errorf("%d offerings, first in %s", len(out.InstanceTypeOfferings), *out.InstanceTypeOfferings[0].Location)
	}
}
