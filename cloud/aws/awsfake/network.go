// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// zone is an availability zone.
type zone struct{ name, id string }

// subnet is a subnet and how its addresses are used.
type subnet struct {
	types.Subnet
	size, used int32
	next       netip.Addr // given out next
}

func (s *subnet) free() int32 { return s.size - s.used }

// address returns one that was not given out before, or starts over.
func (s *subnet) address() netip.Addr {
	whole := netip.MustParsePrefix(*s.CidrBlock)
	if !s.next.IsValid() || !whole.Contains(s.next) {
		s.next = whole.Addr().Next().Next().Next().Next() // EC2 keeps the first four
	}
	given := s.next
	s.next = given.Next()
	return given
}

// seen is the subnet as EC2 describes it.
func (s *subnet) seen() types.Subnet {
	out := copied(s.Subnet)
	out.AvailableIpAddressCount = aws.Int32(s.free())
	return out
}

func (a *AWS) zoneNames() []string {
	out := make([]string, len(a.zones))
	for i, z := range a.zones {
		out[i] = z.name
	}
	return out
}

func (a *AWS) subnet(id string) *subnet {
	for _, s := range a.subnets {
		if *s.SubnetId == id {
			return s
		}
	}
	return nil
}

// AddSubnet adds a subnet with an IPv4 block to a zone of the region and returns
// its ID. Tags are keys and values in turn. It belongs to the cluster's VPC.
func (a *AWS) AddSubnet(zone, cidr string, pairs ...string) (id string) {
	a.locked(func(time.Time) { id = a.addSubnet(a.vpc, zone, cidr, pairs) })
	return id
}

// AddVPC adds another VPC with one subnet and one security group.
func (a *AWS) AddVPC(zone, cidr string) (subnetID, groupID string) {
	a.locked(func(time.Time) {
		vpc := a.id("vpc")
		subnetID = a.addSubnet(vpc, zone, cidr, nil)
		groupID = a.addGroup(vpc, "default", nil)
	})
	return subnetID, groupID
}

func (a *AWS) addSubnet(vpc, zone, cidr string, pairs []string) string {
	block := netip.MustParsePrefix(cidr)
	id := a.id("subnet")
	s := &subnet{size: 1<<(32-block.Bits()) - 5}
	s.Subnet = types.Subnet{
		SubnetId: &id, VpcId: &vpc, AvailabilityZone: &zone, CidrBlock: &cidr, OwnerId: &a.config.Account, State: types.SubnetStateAvailable,
		DefaultForAz: aws.Bool(false), MapPublicIpOnLaunch: aws.Bool(false), AssignIpv6AddressOnCreation: aws.Bool(false),
		SubnetArn: aws.String(a.arn("ec2", a.config.Region, "subnet/"+id)), Tags: tags(pairs...),
	}
	for _, z := range a.zones {
		if z.name == zone {
			s.AvailabilityZoneId = aws.String(z.id)
		}
	}
	a.subnets = append(a.subnets, s)
	return id
}

// UseAddresses takes n addresses of a subnet, as pods and others do; a negative
// n gives them back.
func (a *AWS) UseAddresses(subnetID string, n int32) error {
	err := fmt.Errorf("awsfake: there is no subnet %q", subnetID)
	a.locked(func(time.Time) {
		if s := a.subnet(subnetID); s != nil {
			s.used, err = max(0, min(s.size, s.used+n)), nil
		}
	})
	return err
}

// RemoveSubnet removes a subnet, also from under its instances.
func (a *AWS) RemoveSubnet(id string) {
	a.locked(func(time.Time) {
		a.subnets = slices.DeleteFunc(a.subnets, func(s *subnet) bool { return *s.SubnetId == id })
	})
}

// AddSecurityGroup adds a group to the cluster's VPC and returns its ID. Tags are
// keys and values in turn.
func (a *AWS) AddSecurityGroup(name string, pairs ...string) (id string) {
	a.locked(func(time.Time) { id = a.addGroup(a.vpc, name, pairs) })
	return id
}

// RemoveSecurityGroup removes a group.
func (a *AWS) RemoveSecurityGroup(id string) {
	a.locked(func(time.Time) {
		a.groups = slices.DeleteFunc(a.groups, func(g types.SecurityGroup) bool { return *g.GroupId == id })
	})
}

func (a *AWS) addGroup(vpc, name string, pairs []string) string {
	id := a.id("sg")
	a.groups = append(a.groups, types.SecurityGroup{
		GroupId: &id, GroupName: &name, VpcId: &vpc, OwnerId: &a.config.Account, Description: &name, Tags: tags(pairs...),
		SecurityGroupArn: aws.String(a.arn("ec2", a.config.Region, "security-group/"+id)),
	})
	return id
}

var subnetFilters = resources[*subnet]{
	tags: func(s *subnet) []types.Tag { return s.Tags },
	fields: fields[*subnet]{
		"subnet-id":                  pointer(func(s *subnet) *string { return s.SubnetId }),
		"vpc-id":                     pointer(func(s *subnet) *string { return s.VpcId }),
		"owner-id":                   pointer(func(s *subnet) *string { return s.OwnerId }),
		"availability-zone":          pointer(func(s *subnet) *string { return s.AvailabilityZone }),
		"availability-zone-id":       pointer(func(s *subnet) *string { return s.AvailabilityZoneId }),
		"cidr-block":                 pointer(func(s *subnet) *string { return s.CidrBlock }),
		"state":                      one(func(s *subnet) types.SubnetState { return s.State }),
		"available-ip-address-count": one(func(s *subnet) string { return fmt.Sprint(s.free()) }),
	},
}

// DescribeSubnets describes subnets with their free addresses.
func (e ec2API) DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	return answer(ctx, e.a, "DescribeSubnets", in, func(time.Time) (*ec2.DescribeSubnetsOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, missing := byID(e.a.subnets, in.SubnetIds, func(s *subnet) string { return *s.SubnetId })
		if len(missing) > 0 {
			return nil, doNotExist("InvalidSubnetID.NotFound", "subnet ID", missing)
		}
		found, err := subnetFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		part, next, err := page(found, pages{5, 1000, 0}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeSubnetsOutput{NextToken: next}
		for _, s := range part {
			out.Subnets = append(out.Subnets, s.seen())
		}
		return out, nil
	})
}

var groupFilters = resources[types.SecurityGroup]{
	tags: func(g types.SecurityGroup) []types.Tag { return g.Tags },
	fields: fields[types.SecurityGroup]{
		"group-id":    pointer(func(g types.SecurityGroup) *string { return g.GroupId }),
		"group-name":  pointer(func(g types.SecurityGroup) *string { return g.GroupName }),
		"vpc-id":      pointer(func(g types.SecurityGroup) *string { return g.VpcId }),
		"owner-id":    pointer(func(g types.SecurityGroup) *string { return g.OwnerId }),
		"description": pointer(func(g types.SecurityGroup) *string { return g.Description }),
	},
}

// DescribeSecurityGroups describes security groups.
func (e ec2API) DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return answer(ctx, e.a, "DescribeSecurityGroups", in, func(time.Time) (*ec2.DescribeSecurityGroupsOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, missing := byID(e.a.groups, in.GroupIds, func(g types.SecurityGroup) string { return *g.GroupId })
		if len(missing) > 0 {
			return nil, doNotExist("InvalidGroup.NotFound", "security group", missing)
		}
		found, missing = byID(found, in.GroupNames, func(g types.SecurityGroup) string { return *g.GroupName })
		if len(missing) > 0 {
			return nil, doNotExist("InvalidGroup.NotFound", "security group", missing)
		}
		found, err := groupFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		part, next, err := page(found, pages{5, 1000, 0}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: copied(part), NextToken: next}, nil
	})
}
