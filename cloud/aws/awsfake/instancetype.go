// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// ec2API is Elastic Compute Cloud.
type ec2API struct{ a *AWS }

var instanceTypeFilters = resources[*types.InstanceTypeInfo]{fields: fields[*types.InstanceTypeInfo]{
	"instance-type": one(func(t *types.InstanceTypeInfo) types.InstanceType { return t.InstanceType }),
	"bare-metal":    one(func(t *types.InstanceTypeInfo) string { return strconv.FormatBool(aws.ToBool(t.BareMetal)) }),
	"hypervisor":    one(func(t *types.InstanceTypeInfo) types.InstanceTypeHypervisor { return t.Hypervisor }),
	"current-generation": one(func(t *types.InstanceTypeInfo) string {
		return strconv.FormatBool(aws.ToBool(t.CurrentGeneration))
	}),
	"supported-virtualization-type": func(t *types.InstanceTypeInfo) []string { return texts(t.SupportedVirtualizationTypes) },
	"supported-usage-class":         func(t *types.InstanceTypeInfo) []string { return texts(t.SupportedUsageClasses) },
	"processor-info.supported-architecture": func(t *types.InstanceTypeInfo) []string {
		return texts(t.ProcessorInfo.SupportedArchitectures)
	},
}}

func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// DescribeInstanceTypes describes what is sold in the region.
func (e ec2API) DescribeInstanceTypes(ctx context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	return answer(ctx, e.a, "DescribeInstanceTypes", in, func(time.Time) (*ec2.DescribeInstanceTypesOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		if len(in.InstanceTypes) > 0 && in.MaxResults != nil {
			return nil, refuse("InvalidParameterCombination", "The parameter InstanceTypes cannot be used with the parameter MaxResults")
		}
		found, missing := byID(e.a.market.sold(), texts(in.InstanceTypes), func(t *types.InstanceTypeInfo) string { return string(t.InstanceType) })
		if len(missing) > 0 {
			return nil, refuse("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", strings.Join(missing, ", "))
		}
		found, err := instanceTypeFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		part, next, err := page(found, pages{5, 100, 100}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeInstanceTypesOutput{NextToken: next}
		for _, t := range part {
			out.InstanceTypes = append(out.InstanceTypes, copied(*t))
		}
		return out, nil
	})
}

var offeringFilters = resources[types.InstanceTypeOffering]{fields: fields[types.InstanceTypeOffering]{
	"instance-type": one(func(o types.InstanceTypeOffering) types.InstanceType { return o.InstanceType }),
	"location":      pointer(func(o types.InstanceTypeOffering) *string { return o.Location }),
}}

// DescribeInstanceTypeOfferings says where types are sold.
func (e ec2API) DescribeInstanceTypeOfferings(ctx context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return answer(ctx, e.a, "DescribeInstanceTypeOfferings", in, func(time.Time) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		all, err := offeringFilters.pick(e.a.offerings(in.LocationType), in.Filters)
		if err != nil {
			return nil, err
		}
		part, next, err := page(all, pages{5, 1000, 1000}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: slices.Clone(part), NextToken: next}, nil
	})
}

func (a *AWS) offerings(by types.LocationType) []types.InstanceTypeOffering {
	if by == "" {
		by = types.LocationTypeRegion
	}
	var out []types.InstanceTypeOffering
	for _, t := range a.market.sold() {
		added := map[string]bool{}
		for _, z := range a.zones {
			location := map[types.LocationType]string{
				types.LocationTypeRegion: a.config.Region, types.LocationTypeAvailabilityZone: z.name, types.LocationTypeAvailabilityZoneId: z.id,
			}[by]
			if location != "" && !added[location] && a.market.offered(string(t.InstanceType), z.name) {
				added[location] = true
				out = append(out, types.InstanceTypeOffering{InstanceType: t.InstanceType, Location: &location, LocationType: by})
			}
		}
	}
	return out
}
