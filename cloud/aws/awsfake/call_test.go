// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"

	"karpenter/cloud/aws/client"
)

func (l *lab) subnetsCall() error {
	_, err := l.EC2.DescribeSubnets(l.Context(), &ec2.DescribeSubnetsInput{})
	return err
}

func TestCallsAreCounted(t *testing.T) {
	l := newLab(t, nil)
	l.ResetCalls()
	l.must(l.subnetsCall())
	l.must(l.subnetsCall())
	l.launch(OnDemand, l.override("m5.large", 0))
	l.Deny("ec2:TerminateInstances", NoPolicy)
	l.refused(l.terminate("i-0123456789abcdef0"), "UnauthorizedOperation")
	if diff := cmp.Diff(map[string]int{"DescribeSubnets": 2, "CreateFleet": 1, "TerminateInstances": 1}, l.Calls()); diff != "" {
		t.Error(diff)
	}
}

func TestPermissionsCanBeRemoved(t *testing.T) {
	l := newLab(t, nil)
	launch := func() error {
		_, err := l.EC2.CreateFleet(t.Context(), l.request(OnDemand, 1, l.override("m5.large", 0)))
		return err
	}
	for _, c := range []struct{ action, why, message string }{
		{"ec2:RunInstances", NoPolicy, "User is not authorized to perform this operation because no identity-based policy allows it"},
		{"iam:PassRole", PermissionsBoundary, "User is not authorized to perform this operation due to a permission boundary"},
		{"ec2:CreateFleet", ServiceControlPolicy, "User is not authorized to perform this operation due to a service control policy"},
	} {
		l.Deny(c.action, c.why)
		err := launch()
		l.refused(err, "UnauthorizedOperation")
		if _, message := client.Reason(err.Error()); message != c.message || !strings.Contains(err.Error(), c.action) {
			t.Errorf("%s: %v", c.action, err)
		}
		l.Allow(c.action)
	}
	l.must(launch())
	l.Deny("iam:GetInstanceProfile", NoPolicy)
	_, err := l.IAM.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("p")})
	l.refused(err, "AccessDenied")
	l.Deny("ssm:GetParameter", NoPolicy)
	_, err = l.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/p")})
	l.refused(err, "AccessDeniedException")
	if !client.Unauthorized(err) {
		t.Error("not known as unauthorized")
	}
}

func TestThrottling(t *testing.T) {
	l := newLab(t, nil)
	l.Throttle("DescribeSubnets", Limit{Burst: 2, PerSecond: 0.5})
	for range 2 {
		l.must(l.subnetsCall())
	}
	l.refused(l.subnetsCall(), "RequestLimitExceeded")
	l.clock.Step(time.Second)
	l.refused(l.subnetsCall(), "RequestLimitExceeded")
	l.clock.Step(time.Second)
	l.must(l.subnetsCall())
	l.refused(l.subnetsCall(), "RequestLimitExceeded")
	l.clock.Step(time.Hour) // no more than the burst is saved
	l.must(l.subnetsCall())
	l.must(l.subnetsCall())
	l.refused(l.subnetsCall(), "RequestLimitExceeded")
	l.Throttle("DescribeSubnets", Limit{})
	for range 5 {
		l.must(l.subnetsCall())
	}
	real := RealLimits()
	if real["TerminateInstances"] != (Limit{100, 5}) || real["DescribeInstances"] != (Limit{100, 20}) || real["GetParameter"] != (Limit{}) {
		t.Errorf("%v", real)
	}
	throttled := newLab(t, func(c *Config) { c.Limits = map[string]Limit{"GetParameter": {Burst: 0}} })
	_, err := throttled.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/p")})
	l.refused(err, "ThrottlingException")
}

func TestFailures(t *testing.T) {
	l := newLab(t, nil)
	mend := l.Fail("DescribeSubnets", Failure{Code: "InternalError", Message: "An internal error has occurred", Server: true})
	err := l.subnetsCall()
	if client.Code(err) != "InternalError" || !client.ServerFault(err) || !strings.Contains(err.Error(), "operation error EC2: DescribeSubnets") {
		t.Error(err)
	}
	l.refused(l.subnetsCall(), "InternalError")
	mend()
	l.must(l.subnetsCall())
	l.Fail("DescribeSubnets", Failure{Code: "Once", Times: 1})
	l.Fail("DescribeSubnets", Failure{Code: "Then", Times: 1})
	l.refused(l.subnetsCall(), "Once")
	l.refused(l.subnetsCall(), "Then")
	l.must(l.subnetsCall())

	id := l.launch(OnDemand, l.override("m5.large", 0))
	other := l.launch(OnDemand, l.override("m5.large", 0))
	l.Fail("TerminateInstances", Failure{Code: "InternalError", Lost: true, When: func(in any) bool { return in.(*ec2.TerminateInstancesInput).InstanceIds[0] == id }})
	l.must(l.terminate(other))
	l.refused(l.terminate(id), "InternalError")
	l.is(l.state(id), "terminated") // done, and not told
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}); err == nil {
		t.Error("a call that was given up was answered")
	}
}

// With ControllerPolicy the caller can do what the policies of Karpenter's
// installation allow, and no more: tags decide.
func TestControllerPolicy(t *testing.T) {
	l := newLab(t, nil)
	l.HoldToPolicy(true)
	ours := tags("kubernetes.io/cluster/cluster", "owned", "eks:eks-cluster-name", "cluster", "karpenter.sh/nodepool", "default")
	specs := func(list []types.Tag, kinds ...types.ResourceType) []types.TagSpecification {
		var out []types.TagSpecification
		for _, kind := range kinds {
			out = append(out, types.TagSpecification{ResourceType: kind, Tags: list})
		}
		return out
	}
	template := func(list []types.Tag) error {
		_, err := l.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("ours"), TagSpecifications: specs(list, types.ResourceTypeLaunchTemplate),
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: &l.image, TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
				{ResourceType: types.ResourceTypeNetworkInterface, Tags: ours}, {ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: ours},
			}},
		})
		return err
	}
	l.refused(template(nil), "UnauthorizedOperation")
	l.refused(template(ours[:2]), "UnauthorizedOperation")
	l.must(template(ours))

	fleet := func(name string, list []types.TagSpecification) (string, error) {
		in := l.request(Spot, 1, l.override("m5.large", 0))
		in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName, in.TagSpecifications = &name, list
		out, err := l.EC2.CreateFleet(t.Context(), in)
		if err != nil {
			return "", err
		}
		return out.Instances[0].InstanceIds[0], nil
	}
	all := specs(ours, types.ResourceTypeFleet, types.ResourceTypeInstance, types.ResourceTypeVolume)
	_, err := fleet("ours", all[:2])
	l.refused(err, "UnauthorizedOperation") // the volumes would be no one's
	_, err = fleet("standard", all)
	l.refused(err, "UnauthorizedOperation") // someone else's template
	id, err := fleet("ours", all)
	l.must(err)

	tag := func(resource string, list []types.Tag) error {
		_, err := l.EC2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{resource}, Tags: list})
		return err
	}
	l.must(tag(id, tags("Name", "n", "karpenter.sh/nodeclaim", "c", "eks:eks-cluster-name", "cluster")))
	l.refused(tag(id, tags("karpenter.sh/nodepool", "other")), "UnauthorizedOperation")
	l.refused(tag(id, tags("eks:eks-cluster-name", "other")), "UnauthorizedOperation")
	l.refused(tag(*l.private[0].SubnetId, tags("Name", "n")), "UnauthorizedOperation")
	l.must(l.terminate(id))
	_, err = l.EC2.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("standard")})
	l.refused(err, "UnauthorizedOperation")
	_, err = l.EC2.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("ours")})
	l.must(err)
	_, err = l.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/my/parameter")})
	l.refused(err, "AccessDeniedException")
	l.profilesUnderPolicy()
}

func (l *lab) profilesUnderPolicy() {
	l.Helper()
	create := func(name string, list ...iamtypes.Tag) error {
		_, err := l.IAM.CreateInstanceProfile(l.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Tags: list})
		return err
	}
	tag := func(key, value string) iamtypes.Tag { return iamtypes.Tag{Key: &key, Value: &value} }
	l.refused(create("p", tag("Name", "p")), "AccessDenied")
	l.must(create("p", tag("kubernetes.io/cluster/cluster", "owned"), tag("eks:eks-cluster-name", "cluster"), tag("topology.kubernetes.io/region", "us-west-2"), tag("karpenter.k8s.aws/ec2nodeclass", "default")))
	add := func(role string) error {
		_, err := l.IAM.AddRoleToInstanceProfile(l.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: &role})
		return err
	}
	l.AddRole("Admin", "/")
	l.refused(add("Admin"), "AccessDenied")
	l.refused(add("Nobody"), "NoSuchEntity")
	l.must(add("KarpenterNodeRole-cluster"))
}
