// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// discovery is finding out what there is to buy and to build on.
func discovery() []check {
	return []check{
		{"all instance types are described once", typesInPages},
		{"pages are no longer than asked for", func(s *suite) {
			out, err := s.EC2.DescribeInstanceTypes(s.Context(), &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(10)})
			s.must(err)
			if n := len(out.InstanceTypes); n != 10 || aws.ToString(out.NextToken) == "" {
				s.Errorf("%d types, next %q", n, aws.ToString(out.NextToken))
			}
		}},
		{"a dry run of DescribeInstanceTypes would succeed", func(s *suite) {
			_, err := s.EC2.DescribeInstanceTypes(s.Context(), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
			s.refused(err, "DryRunOperation")
		}},
		{"instance types are offered in zones", offerings},
		{"spot prices are positive", func(s *suite) { s.spotPrices(nil) }},
		{"spot prices of one zone", func(s *suite) { s.spotPrices(&s.zones[0]) }},
		{"subnets are found by tag, wildcard and ID", subnets},
		{"security groups are found by tag, ID and name", securityGroups},
		{"images are found by name, wildcard, owner and ID", images},
		{"images have an architecture", func(s *suite) {
			out, err := s.EC2.DescribeImages(s.Context(), &ec2.DescribeImagesInput{ImageIds: []string{s.image}})
			s.must(err)
			if got := out.Images[0].Architecture; got != types.ArchitectureValuesX8664 {
				s.Errorf("%q", got)
			}
		}},
		{"instance IDs must exist", func(s *suite) {
			_, err := s.EC2.DescribeInstances(s.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
			s.refused(err, "InvalidInstanceID.NotFound")
		}},
		{"instance IDs must be well formed", func(s *suite) {
			_, err := s.EC2.DescribeInstances(s.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{"nonsense"}})
			s.refused(err, "InvalidInstanceID.Malformed")
		}},
	}
}

func typesInPages(s *suite) {
	in := &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100), Filters: []types.Filter{
		{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
		{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
	}}
	found := map[types.InstanceType]types.InstanceTypeInfo{}
	for {
		out, err := s.EC2.DescribeInstanceTypes(s.Context(), in)
		s.must(err)
		for _, t := range out.InstanceTypes {
			if _, twice := found[t.InstanceType]; twice {
				s.Errorf("%s is on two pages", t.InstanceType)
			}
			found[t.InstanceType] = t
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	if len(found) < 500 {
		s.Errorf("only %d types", len(found))
	}
	m5, ok := found["m5.large"]
	if !ok || *m5.VCpuInfo.DefaultVCpus != 2 || *m5.MemoryInfo.SizeInMiB != 8192 || *m5.NetworkInfo.Ipv4AddressesPerInterface != 10 ||
		*m5.NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces != 3 || m5.Hypervisor != types.InstanceTypeHypervisorNitro {
		s.Errorf("m5.large: %+v", m5)
	}
}

func offerings(s *suite) {
	out, err := s.EC2.DescribeInstanceTypeOfferings(s.Context(), &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000), Filters: filters("instance-type", "m5.large"),
	})
	s.must(err)
	var zones []string
	for _, o := range out.InstanceTypeOfferings {
		if o.InstanceType != "m5.large" || o.LocationType != types.LocationTypeAvailabilityZone {
			s.Errorf("not asked for: %+v", o)
		}
		zones = append(zones, aws.ToString(o.Location))
	}
	for _, zone := range s.zones {
		if !slices.Contains(zones, zone) {
			s.Errorf("m5.large is offered in %v, not in %s", zones, zone)
		}
	}
}

// spotPrices checks those of m5.large, in one zone or in all.
func (s *suite) spotPrices(zone *string) {
	s.Helper()
	out, err := s.EC2.DescribeSpotPriceHistory(s.Context(), &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []types.InstanceType{"m5.large"}, AvailabilityZone: zone, ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: aws.Time(time.Now()),
	})
	s.must(err)
	var zones []string
	for _, p := range out.SpotPriceHistory {
		dollars, err := strconv.ParseFloat(aws.ToString(p.SpotPrice), 64)
		if err != nil || dollars <= 0 || p.InstanceType != "m5.large" {
			s.Errorf("%s for %q: %v", p.InstanceType, aws.ToString(p.SpotPrice), err)
		}
		zones = append(zones, aws.ToString(p.AvailabilityZone))
	}
	if zone != nil {
		s.same("zones", slices.Compact(zones), []string{*zone})
	} else if !slices.Contains(zones, s.zones[0]) || !slices.Contains(zones, s.zones[1]) {
		s.Errorf("prices in %v", zones)
	}
}

func subnets(s *suite) {
	for _, c := range []struct {
		name    string
		filters []types.Filter
		want    []string
	}{
		{"tag", filters("tag:zone", s.zones[0], "tag:conformance", "base"), s.subnets[:1]},
		{"tag, wildcard", filters("tag:conformance", "ba*"), s.subnets[:]},
		{"tag key", filters("tag-key", "conformance"), s.subnets[:]},
		{"ID", filters("subnet-id", s.subnets[1]), s.subnets[1:]},
		{"tag, other value", filters("tag:conformance", "nobody"), nil},
	} {
		out, err := s.EC2.DescribeSubnets(s.Context(), &ec2.DescribeSubnetsInput{Filters: c.filters, MaxResults: aws.Int32(500)})
		s.must(err)
		var got []string
		for _, subnet := range out.Subnets {
			got = append(got, *subnet.SubnetId)
			if aws.ToString(subnet.AvailabilityZoneId) == "" || aws.ToInt32(subnet.AvailableIpAddressCount) > 251 || aws.ToInt32(subnet.AvailableIpAddressCount) < 1 {
				s.Errorf("%+v", subnet)
			}
		}
		s.same(c.name, got, c.want)
	}
}

// same wants the same texts in any order.
func (s *suite) same(what string, got, want []string) {
	s.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func securityGroups(s *suite) {
	for name, f := range map[string][]types.Filter{
		"tag": filters("tag:conformance", "base"), "ID": filters("group-id", s.group), "name": filters("group-name", "conformance-base"), "tag key": filters("tag-key", "conformance"),
	} {
		out, err := s.EC2.DescribeSecurityGroups(s.Context(), &ec2.DescribeSecurityGroupsInput{Filters: f, MaxResults: aws.Int32(500)})
		s.must(err)
		var got []string
		for _, g := range out.SecurityGroups {
			got = append(got, *g.GroupId)
		}
		s.same(name, got, []string{s.group})
	}
}

func images(s *suite) {
	for name, in := range map[string]*ec2.DescribeImagesInput{
		"name": {Filters: filters("name", "conformance-base", "state", "available"), Owners: []string{"self", "amazon"}}, "wildcard": {Filters: filters("name", "conformance-b*")},
		"ID": {Filters: filters("image-id", s.image), IncludeDeprecated: aws.Bool(true)}, "owner": {Filters: filters("name", "conformance-*"), Owners: []string{"self"}},
	} {
		out, err := s.EC2.DescribeImages(s.Context(), in)
		s.must(err)
		if len(out.Images) != 1 || *out.Images[0].ImageId != s.image {
			s.Errorf("%s: %d images", name, len(out.Images))
			continue
		}
		if _, err := time.Parse(time.RFC3339, aws.ToString(out.Images[0].CreationDate)); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.EC2.DescribeImages(s.Context(), &ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
	s.refused(err, "InvalidAMIID.NotFound")
}
