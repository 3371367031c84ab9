// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/cloud/aws/client"
)

// lab is an account with a clock to step and a launch template "standard".
type lab struct {
	*testing.T
	*AWS
	*client.Services
	clock   *clocktesting.FakeClock
	private []types.Subnet // one per zone
	image   string
}

func newLab(t *testing.T, change func(*Config)) *lab {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	config := Config{Clock: clock, Types: []string{"m5.large", "m5.xlarge", "c5.large", "m6g.large", "t3.large", "p5.48xlarge", "m5.metal"}}
	if change != nil {
		change(&config)
	}
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, AWS: a, Services: a.Services(), clock: clock}
	subnets, err := l.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: filters("tag:kubernetes.io/role/internal-elb", "1")})
	l.must(err)
	l.private = subnets.Subnets
	images, err := l.EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: filters("name", "*al2023-x86_64-standard*")})
	l.must(err)
	l.image = *images.Images[0].ImageId
	l.template("standard", nil)
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// refused checks the code of an error.
func (l *lab) refused(err error, code string) {
	l.Helper()
	if got := client.Code(err); got != code {
		l.Errorf("error %v, want code %s", err, code)
	}
}

func filters(pairs ...string) []types.Filter {
	var out []types.Filter
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, types.Filter{Name: &pairs[i], Values: []string{pairs[i+1]}})
	}
	return out
}

func (l *lab) template(name string, change func(*types.RequestLaunchTemplateData)) {
	l.Helper()
	groups, err := l.EC2.DescribeSecurityGroups(l.Context(), &ec2.DescribeSecurityGroupsInput{Filters: filters("tag:karpenter.sh/discovery", "*")})
	l.must(err)
	data := &types.RequestLaunchTemplateData{
		ImageId: &l.image, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh"))),
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), Groups: []string{*groups.SecurityGroups[0].GroupId}}},
	}
	if change != nil {
		change(data)
	}
	_, err = l.EC2.CreateLaunchTemplate(l.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: data,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags("eks:eks-cluster-name", "cluster")}},
	})
	l.must(err)
}

// override is a type in the private subnet of a zone (0 is a).
func (l *lab) override(typ string, zone int) types.FleetLaunchTemplateOverridesRequest {
	return types.FleetLaunchTemplateOverridesRequest{InstanceType: types.InstanceType(typ), SubnetId: l.private[zone].SubnetId, AvailabilityZone: l.private[zone].AvailabilityZone}
}

func (l *lab) request(capacityType string, n int32, overrides ...types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type:                        types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: &n, DefaultTargetCapacityType: types.DefaultTargetCapacityType(capacityType)},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("standard"), Version: aws.String("$Latest")},
			Overrides:                   overrides,
		}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags("karpenter.sh/nodepool", "default")}},
	}
	switch capacityType {
	case Spot:
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	case OnDemand:
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	return in
}

// bought prints the result of a fleet: types and zones with counts, then the
// codes of errors with where.
func bought(out *ec2.CreateFleetOutput) []string {
	lines := []string{}
	for _, i := range out.Instances {
		o := i.LaunchTemplateAndOverrides.Overrides
		lines = append(lines, string(i.InstanceType)+" "+(*o.AvailabilityZone)[9:]+strings.Repeat(" +", len(i.InstanceIds)))
	}
	for _, e := range out.Errors {
		o := e.LaunchTemplateAndOverrides.Overrides
		lines = append(lines, string(o.InstanceType)+" "+(*o.AvailabilityZone)[9:]+" "+*e.ErrorCode)
	}
	return lines
}

func (l *lab) fleet(in *ec2.CreateFleetInput, want ...string) *ec2.CreateFleetOutput {
	l.Helper()
	out, err := l.EC2.CreateFleet(l.Context(), in)
	l.must(err)
	if diff := cmp.Diff(want, bought(out)); diff != "" {
		l.Error(diff)
	}
	return out
}

func TestFleetBuysByStrategy(t *testing.T) {
	l := newLab(t, nil)
	large, xlarge := l.override("m5.large", 0), l.override("m5.xlarge", 1)
	l.fleet(l.request(OnDemand, 2, xlarge, large), "m5.large a + +")

	large.Priority, xlarge.Priority = aws.Float64(2), aws.Float64(1)
	prioritized := l.request(OnDemand, 1, large, xlarge)
	prioritized.OnDemandOptions.AllocationStrategy = types.FleetOnDemandAllocationStrategyPrioritized
	l.fleet(prioritized, "m5.xlarge b +")

	l.SetSpotPrice("m5.large", "", 0.01)
	l.SetSpotPrice("m5.xlarge", "", 0.02)
	l.fleet(l.request(Spot, 1, xlarge, large), "m5.large a +")
	l.Stock(Pool{"m5.large", "us-west-2a", Spot}, 1)
	l.fleet(l.request(Spot, 3, large, xlarge), "m5.xlarge b + + +") // the deeper pool goes first
	byPriority := l.request(Spot, 1, large, xlarge)
	byPriority.SpotOptions.AllocationStrategy = types.SpotAllocationStrategyCapacityOptimizedPrioritized
	l.fleet(byPriority, "m5.xlarge b +")
}

func TestFleetRunsOutOfCapacity(t *testing.T) {
	l := newLab(t, nil)
	l.Stock(Pool{"m5.large", "us-west-2a", OnDemand}, 1)
	out := l.fleet(l.request(OnDemand, 3, l.override("m5.large", 0), l.override("m5.xlarge", 0)),
		"m5.large a +", "m5.xlarge a + +", "m5.large a InsufficientInstanceCapacity")
	if m := *out.Errors[0].ErrorMessage; !strings.Contains(m, "or choosing us-west-2b, us-west-2c.") {
		t.Error(m)
	}
	l.Stock(Pool{}, 0)
	out = l.fleet(l.request(Spot, 1, l.override("m5.large", 0)), "m5.large a InsufficientInstanceCapacity")
	if out.FleetId == nil || out.Errors[0].Lifecycle != types.InstanceLifecycleSpot {
		t.Errorf("%+v", out)
	}
	// Terminated instances return their capacity.
	_, err := l.EC2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{*l.Instances()[0].InstanceId}})
	l.must(err)
	l.fleet(l.request(OnDemand, 1, l.override("m5.large", 0)), "m5.large a +")
}

func TestSpoiltPool(t *testing.T) {
	l := newLab(t, nil)
	mend := l.Spoil(Pool{Type: "m5.large"}, "MaxFleetCountExceeded", "No more fleets.")
	for _, way := range []string{OnDemand, Spot} {
		out := l.fleet(l.request(way, 1, l.override("m5.large", 0)), "m5.large a MaxFleetCountExceeded")
		l.is(*out.Errors[0].ErrorMessage, "No more fleets.")
	}
	mend()
	l.fleet(l.request(OnDemand, 1, l.override("m5.large", 0)), "m5.large a +")
}

// Nothing depends on capacity here: the configuration is wrong.
func TestFleetRejectsConfigurations(t *testing.T) {
	l := newLab(t, nil)
	_, strangers := l.AddVPC("us-west-2a", "10.0.0.0/24")
	for name, c := range map[string]struct {
		change func(*types.RequestLaunchTemplateData)
		typ    string
		code   string
	}{
		"no image":           {func(d *types.RequestLaunchTemplateData) { d.ImageId = aws.String("ami-0") }, "m5.large", "InvalidAMIID.NotFound"},
		"malformed image":    {func(d *types.RequestLaunchTemplateData) { d.ImageId = aws.String("x") }, "m5.large", "InvalidAMIID.Malformed"},
		"other architecture": {nil, "m6g.large", "InvalidParameterValue"},
		"no such group":      {func(d *types.RequestLaunchTemplateData) { d.NetworkInterfaces[0].Groups = []string{"sg-0"} }, "m5.large", "InvalidGroup.NotFound"},
		"other network":      {func(d *types.RequestLaunchTemplateData) { d.NetworkInterfaces[0].Groups = []string{strangers} }, "m5.large", "InvalidParameter"},
		"no profile": {func(d *types.RequestLaunchTemplateData) {
			d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nobody")}
		}, "m5.large", "InvalidParameterValue"},
		"no reservation": {func(d *types.RequestLaunchTemplateData) {
			d.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: aws.String("cr-0")}}
		}, "m5.large", "InvalidCapacityReservationId.NotFound"},
		"no placement group": {func(d *types.RequestLaunchTemplateData) {
			d.Placement = &types.LaunchTemplatePlacementRequest{GroupName: aws.String("nowhere")}
		}, "m5.large", "InvalidPlacementGroup.Unknown"},
		"no EFA":       {func(d *types.RequestLaunchTemplateData) { d.NetworkInterfaces[0].InterfaceType = aws.String("efa") }, "m5.large", "InvalidParameterCombination"},
		"no such type": {nil, "m9.huge", "InvalidParameterValue"},
	} {
		l.template("case/"+strings.ReplaceAll(name, " ", "-"), c.change)
		in := l.request(OnDemand, 1, l.override(c.typ, 0))
		in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("case/" + strings.ReplaceAll(name, " ", "-"))
		out, err := l.EC2.CreateFleet(t.Context(), in)
		l.must(err)
		if len(out.Instances) != 0 || len(out.Errors) != 1 || *out.Errors[0].ErrorCode != c.code {
			t.Errorf("%s: %v, want %s", name, bought(out), c.code)
		}
	}
	l.Offer("m5.large", "us-west-2a", false)
	l.fleet(l.request(OnDemand, 1, l.override("m5.large", 0)), "m5.large a InvalidFleetConfiguration")
	if n := len(l.Instances()); n != 0 {
		t.Errorf("%d instances", n)
	}
}

func TestFleetRequestErrors(t *testing.T) {
	l := newLab(t, nil)
	call := func(change func(*ec2.CreateFleetInput)) error {
		in := l.request(OnDemand, 1, l.override("m5.large", 0))
		change(in)
		_, err := l.EC2.CreateFleet(t.Context(), in)
		return err
	}
	spec := func(in *ec2.CreateFleetInput) *types.FleetLaunchTemplateSpecificationRequest {
		return in.LaunchTemplateConfigs[0].LaunchTemplateSpecification
	}
	l.refused(call(func(in *ec2.CreateFleetInput) { spec(in).LaunchTemplateName = aws.String("gone") }), "InvalidLaunchTemplateName.NotFoundException")
	l.refused(call(func(in *ec2.CreateFleetInput) {
		spec(in).LaunchTemplateName, spec(in).LaunchTemplateId = nil, aws.String("lt-0")
	}), "InvalidLaunchTemplateId.NotFound")
	l.refused(call(func(in *ec2.CreateFleetInput) {
		in.LaunchTemplateConfigs[0].Overrides[0].SubnetId = aws.String("subnet-0")
	}), "InvalidSubnetID.NotFound")
	l.refused(call(func(in *ec2.CreateFleetInput) { in.LaunchTemplateConfigs[0].Overrides[0].SubnetId = nil }), "VPCIdNotSpecified")
	l.refused(call(func(in *ec2.CreateFleetInput) { in.DryRun = aws.Bool(true) }), "DryRunOperation")
	l.refused(call(func(in *ec2.CreateFleetInput) { in.Type = types.FleetTypeMaintain }), "InvalidParameterValue")
	l.refused(call(func(in *ec2.CreateFleetInput) { in.SpotOptions = &types.SpotOptionsRequest{} }), "InvalidParameterCombination")
	if n := len(l.Instances()); n != 0 {
		t.Errorf("%d instances", n)
	}
}

func TestFleetIsIdempotentByClientToken(t *testing.T) {
	l := newLab(t, nil)
	in := l.request(OnDemand, 2, l.override("m5.large", 0))
	in.ClientToken = aws.String("token")
	l.Fail("CreateFleet", Failure{Code: "InternalError", Server: true, Lost: true, Times: 1})
	_, err := l.EC2.CreateFleet(t.Context(), in)
	l.refused(err, "InternalError")
	if !client.ServerFault(err) {
		t.Errorf("%v is not the server's fault", err)
	}
	again := l.fleet(in, "m5.large a + +")
	third := l.fleet(in, "m5.large a + +")
	if diff := cmp.Diff(again.Instances[0].InstanceIds, third.Instances[0].InstanceIds); diff != "" {
		t.Error(diff)
	}
	if n := len(l.Instances()); n != 2 {
		t.Errorf("%d instances, want 2", n)
	}
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(3)
	_, err = l.EC2.CreateFleet(t.Context(), in)
	l.refused(err, "IdempotentParameterMismatch")
	l.clock.Step(25 * time.Hour) // the token is forgotten
	l.fleet(in, "m5.large a + + +")
}

func TestLaunchedInstance(t *testing.T) {
	l := newLab(t, nil)
	_, err := l.IAM.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p"), Path: aws.String("/karpenter/")})
	l.must(err)
	_, err = l.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String("KarpenterNodeRole-cluster")})
	l.must(err)
	l.template("full", func(d *types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("p")}
		d.Placement = &types.LaunchTemplatePlacementRequest{Tenancy: types.TenancyDedicated}
		d.NetworkInterfaces[0].Ipv4PrefixCount = aws.Int32(2)
	})
	in := l.request(Spot, 1, l.override("m5.large", 1))
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("full")
	l.fleet(in, "m5.large b +")
	m := l.Instances()[0]
	got := []string{
		string(m.InstanceType), string(m.InstanceLifecycle), string(m.State.Name), string(m.Placement.Tenancy), *m.Placement.AvailabilityZone, *m.IamInstanceProfile.Arn,
		*m.PrivateDnsName, *m.SecurityGroups[0].GroupName, string(m.Architecture), value(m.Tags, "karpenter.sh/nodepool"), (*m.SpotInstanceRequestId)[:4], m.UserData,
	}
	want := []string{
		"m5.large", "spot", "running", "dedicated", "us-west-2b", "arn:aws:iam::111122223333:instance-profile/karpenter/p", "ip-192-168-128-4.us-west-2.compute.internal",
		"eks-cluster-sg-cluster", "x86_64", "default", "sir-", "IyEvYmluL3No",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if free := l.free(*m.SubnetId); free != 8187-33 {
		t.Errorf("%d addresses free", free)
	}
	l.must(l.Lose(*m.InstanceId))
	if free := l.free(*l.private[1].SubnetId); free != 8187 {
		t.Errorf("%d addresses free after its end", free)
	}
}

func value(list []types.Tag, key string) string {
	i := slices.IndexFunc(list, func(t types.Tag) bool { return *t.Key == key })
	if i < 0 {
		return ""
	}
	return *list[i].Value
}

func (l *lab) free(subnet string) int32 {
	l.Helper()
	out, err := l.EC2.DescribeSubnets(l.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet}})
	l.must(err)
	return *out.Subnets[0].AvailableIpAddressCount
}
