// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"
)

func (l *lab) profile(name, path string) error {
	_, err := l.IAM.CreateInstanceProfile(l.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path})
	return err
}

func TestInstanceProfiles(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	l.must(l.profile("a", "/karpenter/us-west-2/cluster/1/"))
	l.refused(l.profile("a", "/"), "EntityAlreadyExists")
	l.refused(l.profile("no/slash", "/"), "ValidationError")
	l.refused(l.profile("b", "karpenter"), "ValidationError")
	role := func(name string, add bool) error {
		if add {
			_, err := l.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("a"), RoleName: &name})
			return err
		}
		_, err := l.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String("a"), RoleName: &name})
		return err
	}
	remove := func(name string) error {
		_, err := l.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
		return err
	}
	missing := role("Nobody", true)
	l.refused(missing, "NoSuchEntity")
	if !strings.Contains(strings.ToLower(missing.Error()), "role") {
		t.Error("the error does not say that it is the role:", missing)
	}
	const node = "KarpenterNodeRole-cluster"
	l.must(role(node, true))
	l.refused(role(node, true), "LimitExceeded")
	l.refused(remove("a"), "DeleteConflict")
	out, err := l.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("a")})
	l.must(err)
	if p := out.InstanceProfile; *p.Roles[0].RoleName != node || *p.Arn != "arn:aws:iam::111122223333:instance-profile/karpenter/us-west-2/cluster/1/a" {
		t.Errorf("%+v", p)
	}
	l.must(role(node, false))
	l.refused(role(node, false), "NoSuchEntity")
	l.must(remove("a"))
	l.refused(remove("a"), "NoSuchEntity")
}

func TestListInstanceProfiles(t *testing.T) {
	l := newLab(t, nil)
	for _, name := range []string{"c", "a", "b"} {
		l.must(l.profile(name, "/karpenter/us-west-2/cluster/1/"))
	}
	l.must(l.profile("d", "/karpenter/us-west-2/other/"))
	in := &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/us-west-2/cluster/"), MaxItems: aws.Int32(2)}
	var names []string
	for {
		out, err := l.IAM.ListInstanceProfiles(t.Context(), in)
		l.must(err)
		for _, p := range out.InstanceProfiles {
			names = append(names, *p.InstanceProfileName)
		}
		if in.Marker = out.Marker; !out.IsTruncated {
			break
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Error(diff)
	}
}

// EC2 does not know a new profile at once, and none without a role.
func TestProfileIsKnownToEC2Later(t *testing.T) {
	l := newLab(t, func(c *Config) { c.ProfileDelay = 10 * time.Second })
	l.must(l.profile("p", "/"))
	l.template("with-profile", func(d *types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("p")}
	})
	tryIt := func() error {
		_, err := l.EC2.RunInstances(t.Context(), &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("with-profile")},
			NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: l.private[0].SubnetId}},
		})
		return err
	}
	says := func(text string) {
		t.Helper()
		err := tryIt()
		l.refused(err, "InvalidParameterValue")
		if !strings.Contains(err.Error(), text) {
			t.Error(err)
		}
	}
	says("Value (p) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name")
	l.clock.Step(10 * time.Second)
	says("has no associated IAM Roles")
	_, err := l.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String("KarpenterNodeRole-cluster")})
	l.must(err)
	l.refused(tryIt(), "DryRunOperation")
	if err := l.AddInstanceProfile("mine", "Nobody"); err == nil {
		t.Error("a profile with a role that is not there")
	}
	l.must(l.AddInstanceProfile("mine", "KarpenterNodeRole-cluster"))
	out, err := l.IAM.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("mine")})
	l.must(err)
	l.is(*out.InstanceProfile.Roles[0].RoleName+" "+*out.InstanceProfile.Arn, "KarpenterNodeRole-cluster arn:aws:iam::111122223333:instance-profile/mine")
	l.RemoveRole("KarpenterNodeRole-cluster")
	says("has no associated IAM Roles")
}

func TestRunInstancesIsForDryRuns(t *testing.T) {
	l := newLab(t, nil)
	in := &ec2.RunInstancesInput{ImageId: &l.image, InstanceType: "m5.large", SubnetId: l.private[0].SubnetId}
	_, err := l.EC2.RunInstances(t.Context(), in)
	l.refused(err, "UnsupportedOperation")
	in.SubnetId = aws.String("subnet-0")
	_, err = l.EC2.RunInstances(t.Context(), in)
	l.refused(err, "InvalidSubnetID.NotFound")
}

func TestLaunchTemplates(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	create := func(name, data string, token *string) (string, error) {
		out, err := l.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{UserData: &data}, ClientToken: token,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags("team", "a")}},
		})
		if err != nil {
			return "", err
		}
		return *out.LaunchTemplate.LaunchTemplateId, nil
	}
	id, err := create("karpenter.k8s.aws/123", "", aws.String("token"))
	l.must(err)
	again, err := create("karpenter.k8s.aws/123", "", aws.String("token"))
	l.must(err)
	l.is(again, id)
	_, err = create("karpenter.k8s.aws/123", "", nil)
	l.refused(err, "InvalidLaunchTemplateName.AlreadyExistsException")
	_, err = create("a b c", "", nil)
	l.refused(err, "InvalidLaunchTemplateName.MalformedException")
	_, err = create("much", base64.StdEncoding.EncodeToString(make([]byte, 16385)), nil)
	l.refused(err, "InvalidUserData.Malformed")
	_, err = create("just-right", base64.StdEncoding.EncodeToString(make([]byte, 16384)), nil)
	l.must(err)
	_, err = create("no-base64", "#!/bin/sh", nil)
	l.refused(err, "InvalidUserData.Malformed")

	names := func(in *ec2.DescribeLaunchTemplatesInput) ([]string, error) {
		out, err := l.EC2.DescribeLaunchTemplates(ctx, in)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, t := range out.LaunchTemplates {
			names = append(names, *t.LaunchTemplateName)
		}
		return names, nil
	}
	for _, in := range []*ec2.DescribeLaunchTemplatesInput{
		{LaunchTemplateIds: []string{id}}, {LaunchTemplateNames: []string{"karpenter.k8s.aws/123"}}, {Filters: filters("launch-template-name", "karpenter*", "tag:team", "a")},
	} {
		if got, err := names(in); err != nil || !cmp.Equal(got, []string{"karpenter.k8s.aws/123"}) {
			t.Errorf("%v, %v", got, err)
		}
	}
	_, err = names(&ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"nobody"}})
	l.refused(err, "InvalidLaunchTemplateName.NotFoundException")
	_, err = names(&ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-0"}})
	l.refused(err, "InvalidLaunchTemplateId.NotFound")
	_, err = l.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	l.must(err)
	_, err = l.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	l.refused(err, "InvalidLaunchTemplateId.NotFound")
	_, err = create("karpenter.k8s.aws/123", "", nil) // the name is free again
	l.must(err)
}

func TestAddressesRunOut(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddSubnet("us-west-2a", "10.1.0.0/28", "size", "small")
	if free := l.free(id); free != 11 {
		t.Errorf("%d addresses free, want 16 but five", free)
	}
	l.must(l.UseAddresses(id, 9))
	small := l.override("m5.large", 0)
	small.SubnetId = &id
	out := l.fleet(l.request(OnDemand, 3, small), "m5.large a + +", "m5.large a InsufficientFreeAddressesInSubnet")
	if e := out.Errors[0]; *e.LaunchTemplateAndOverrides.Overrides.SubnetId != id {
		t.Errorf("%+v", e)
	}
	l.must(l.UseAddresses(id, -1))
	l.fleet(l.request(OnDemand, 1, small), "m5.large a +")
	small.AvailabilityZone = aws.String("us-west-2b")
	_, err := l.EC2.CreateFleet(t.Context(), l.request(OnDemand, 1, small))
	l.refused(err, "InvalidParameterValue")
	l.RemoveSubnet(id)
	_, err = l.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{id}})
	l.refused(err, "InvalidSubnetID.NotFound")
	if err := l.UseAddresses(id, 1); err == nil {
		t.Error("addresses of no subnet were used")
	}
}

func TestQuotas(t *testing.T) {
	l := newLab(t, nil)
	l.SetQuota(OnDemand, 4)
	l.SetQuota(Spot, 0)
	l.fleet(l.request(OnDemand, 3, l.override("m5.large", 0)), "m5.large a + +", "m5.large a VcpuLimitExceeded")
	l.fleet(l.request(Spot, 1, l.override("m5.large", 0)), "m5.large a MaxSpotInstanceCountExceeded")
	l.SetQuota(Spot, -1)
	l.RefuseSpotRole(true)
	l.fleet(l.request(Spot, 1, l.override("m5.large", 0)), "m5.large a AuthFailure.ServiceLinkedRoleCreationNotPermitted")
	l.RefuseSpotRole(false)
	l.fleet(l.request(Spot, 1, l.override("m5.large", 0)), "m5.large a +")
}

func TestSecurityGroups(t *testing.T) {
	l := newLab(t, nil)
	id := l.AddSecurityGroup("extra", "team", "a")
	for name, in := range map[string]*ec2.DescribeSecurityGroupsInput{
		"ID": {GroupIds: []string{id}}, "filter ID": {Filters: filters("group-id", id)}, "name": {Filters: filters("group-name", "extra")}, "tag": {Filters: filters("tag:team", "a")},
	} {
		out, err := l.EC2.DescribeSecurityGroups(t.Context(), in)
		l.must(err)
		if len(out.SecurityGroups) != 1 || *out.SecurityGroups[0].GroupId != id {
			t.Errorf("%s: %d groups", name, len(out.SecurityGroups))
		}
	}
	l.RemoveSecurityGroup(id)
	_, err := l.EC2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	l.refused(err, "InvalidGroup.NotFound")
}

func TestParameters(t *testing.T) {
	l := newLab(t, nil)
	get := func(name string) (string, error) {
		out, err := l.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
		if err != nil {
			return "", err
		}
		return *out.Parameter.Value, nil
	}
	l.SetParameter("/my/image", "ami-1")
	l.SetParameter("plain", "ami-2")
	for name, want := range map[string]string{
		"/my/image": "ami-1", "arn:aws:ssm:us-west-2:111122223333:parameter/my/image": "ami-1", "plain": "ami-2", "arn:aws:ssm:us-west-2:111122223333:parameter/plain": "ami-2",
	} {
		got, err := get(name)
		l.must(err)
		l.is(got, want)
	}
	l.SetParameter("/my/image", "")
	_, err := get("/my/image")
	l.refused(err, "ParameterNotFound")
}

func TestZonalShift(t *testing.T) {
	l := newLab(t, nil)
	arn := "arn:aws:eks:us-west-2:111122223333:cluster/cluster"
	shifts := func() []string {
		out, err := l.ZonalShift.GetManagedResource(t.Context(), &arczonalshift.GetManagedResourceInput{ResourceIdentifier: &arn})
		l.must(err)
		got := []string{}
		for _, s := range out.ZonalShifts {
			got = append(got, *s.AwayFrom+" "+string(s.AppliedStatus))
		}
		return got
	}
	l.ShiftAway("usw2-az1", l.clock.Now().Add(time.Hour), true)
	l.ShiftAway("usw2-az2", l.clock.Now().Add(2*time.Hour), false)
	if diff := cmp.Diff([]string{"usw2-az1 APPLIED", "usw2-az2 NOT_APPLIED"}, shifts()); diff != "" {
		t.Error(diff)
	}
	l.clock.Step(time.Hour)
	if diff := cmp.Diff([]string{"usw2-az2 NOT_APPLIED"}, shifts()); diff != "" {
		t.Error(diff)
	}
	l.EndShifts()
	if got := shifts(); len(got) != 0 {
		t.Error(got)
	}
	_, err := l.ZonalShift.GetManagedResource(t.Context(), &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String("arn")})
	l.refused(err, "ResourceNotFoundException")
}

func TestClusterChanges(t *testing.T) {
	l := newLab(t, nil)
	l.SetKubernetesVersion("1.34")
	l.SetServiceCIDR("fd00::/108", true)
	out, err := l.EKS.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("cluster")})
	l.must(err)
	if c := out.Cluster; *c.Version != "1.34" || c.KubernetesNetworkConfig.ServiceIpv4Cidr != nil || *c.KubernetesNetworkConfig.ServiceIpv6Cidr != "fd00::/108" {
		t.Errorf("%+v", c)
	}
}

func TestWildcards(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"*", "", true}, {"a*c", "abc", true}, {"a*c", "ac", true}, {"a*c", "abd", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{`a\*`, "a*", true}, {`a\*`, "ab", false}, {"abc", "abc", true}, {"abc", "abcd", false}, {"", "", true}, {"*b*", "abc", true}, {`a\`, `a\`, true},
	} {
		if got := wildcard(c.pattern, c.value); got != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.value, got)
		}
	}
}
