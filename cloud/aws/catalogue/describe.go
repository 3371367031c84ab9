// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	facts "karpenter/cloud/ec2"
)

// Page sizes of EC2's answers.
const (
	typesAtOnce     = 100
	offeringsAtOnce = 1000
)

// DescribeTypes asks which types there are, and describes each.
func DescribeTypes(ctx context.Context, api EC2) (map[string]facts.Description, error) {
	out := map[string]facts.Description{}
	pages := ec2.NewDescribeInstanceTypesPaginator(api, &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{
			{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
		MaxResults: aws.Int32(typesAtOnce),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe instance types: %w", err)
		}
		for i := range page.InstanceTypes {
			d := Describe(&page.InstanceTypes[i])
			out[d.InstanceType] = d
		}
	}
	return out, nil
}

// describeOfferings asks which zones offer which types.
func describeOfferings(ctx context.Context, api EC2) (map[string][]string, error) {
	out := map[string][]string{}
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(api, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(offeringsAtOnce),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe instance type offerings: %w", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			out[string(o.InstanceType)] = append(out[string(o.InstanceType)], aws.ToString(o.Location))
		}
	}
	for name, zones := range out {
		slices.Sort(zones)
		out[name] = slices.Compact(zones)
	}
	return out, nil
}

// Describe returns the relevant parts of EC2's description of a type.
func Describe(in *types.InstanceTypeInfo) facts.Description {
	d := facts.Description{
		InstanceType:                  string(in.InstanceType),
		SupportedUsageClasses:         texts(in.SupportedUsageClasses),
		Hypervisor:                    string(in.Hypervisor),
		BareMetal:                     aws.ToBool(in.BareMetal),
		BurstablePerformanceSupported: aws.ToBool(in.BurstablePerformanceSupported),
		NitroEnclavesSupport:          string(in.NitroEnclavesSupport),
	}
	if p := in.ProcessorInfo; p != nil {
		d.ProcessorInfo = facts.ProcessorInfo{
			Manufacturer: aws.ToString(p.Manufacturer), SupportedArchitectures: texts(p.SupportedArchitectures),
			SustainedClockSpeedInGhz: aws.ToFloat64(p.SustainedClockSpeedInGhz), SupportedFeatures: texts(p.SupportedFeatures),
		}
	}
	if in.VCpuInfo != nil {
		d.VCpuInfo.DefaultVCpus = int64(aws.ToInt32(in.VCpuInfo.DefaultVCpus))
	}
	if in.MemoryInfo != nil {
		d.MemoryInfo.SizeInMiB = aws.ToInt64(in.MemoryInfo.SizeInMiB)
	}
	if s := in.InstanceStorageInfo; s != nil {
		d.InstanceStorageInfo = &facts.InstanceStorageInfo{TotalSizeInGB: aws.ToInt64(s.TotalSizeInGB), NvmeSupport: string(s.NvmeSupport)}
	}
	if e := in.EbsInfo; e != nil {
		d.EbsInfo.EbsOptimizedSupport = string(e.EbsOptimizedSupport)
		if e.EbsOptimizedInfo != nil {
			d.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps = int64(aws.ToInt32(e.EbsOptimizedInfo.MaximumBandwidthInMbps))
		}
	}
	if in.NetworkInfo != nil {
		d.NetworkInfo = describeNetwork(in.NetworkInfo)
	}
	if in.PlacementGroupInfo != nil {
		d.PlacementGroupInfo.SupportedStrategies = texts(in.PlacementGroupInfo.SupportedStrategies)
	}
	describeDevices(in, &d)
	return d
}

func describeNetwork(in *types.NetworkInfo) facts.NetworkInfo {
	out := facts.NetworkInfo{
		EnaSupport:                   string(in.EnaSupport),
		Ipv4AddressesPerInterface:    int64(aws.ToInt32(in.Ipv4AddressesPerInterface)),
		DefaultNetworkCardIndex:      int(aws.ToInt32(in.DefaultNetworkCardIndex)),
		EncryptionInTransitSupported: aws.ToBool(in.EncryptionInTransitSupported),
		NetworkPerformance:           aws.ToString(in.NetworkPerformance),
	}
	if in.EfaInfo != nil {
		out.EfaInfo.MaximumEfaInterfaces = int64(aws.ToInt32(in.EfaInfo.MaximumEfaInterfaces))
	}
	for _, card := range in.NetworkCards {
		out.NetworkCards = append(out.NetworkCards, facts.NetworkCard{
			NetworkCardIndex:         int(aws.ToInt32(card.NetworkCardIndex)),
			MaximumNetworkInterfaces: int64(aws.ToInt32(card.MaximumNetworkInterfaces)),
			BaselineBandwidthInGbps:  aws.ToFloat64(card.BaselineBandwidthInGbps),
		})
	}
	return out
}

func describeDevices(in *types.InstanceTypeInfo, d *facts.Description) {
	if in.GpuInfo != nil {
		for _, g := range in.GpuInfo.Gpus {
			device := facts.DeviceInfo{Name: aws.ToString(g.Name), Manufacturer: aws.ToString(g.Manufacturer), Count: int64(aws.ToInt32(g.Count))}
			if g.MemoryInfo != nil {
				device.MemoryInfo.SizeInMiB = int64(aws.ToInt32(g.MemoryInfo.SizeInMiB))
			}
			d.GpuInfo.Gpus = append(d.GpuInfo.Gpus, device)
		}
	}
	if in.InferenceAcceleratorInfo != nil {
		for _, a := range in.InferenceAcceleratorInfo.Accelerators {
			d.InferenceAcceleratorInfo.Accelerators = append(d.InferenceAcceleratorInfo.Accelerators, facts.DeviceInfo{
				Name: aws.ToString(a.Name), Manufacturer: aws.ToString(a.Manufacturer), Count: int64(aws.ToInt32(a.Count)),
			})
		}
	}
	if in.NeuronInfo != nil {
		for _, n := range in.NeuronInfo.NeuronDevices {
			device := facts.NeuronDevice{Name: aws.ToString(n.Name), Count: int64(aws.ToInt32(n.Count))}
			if n.CoreInfo != nil {
				device.CoreInfo.Count = int64(aws.ToInt32(n.CoreInfo.Count))
			}
			d.NeuronInfo.NeuronDevices = append(d.NeuronInfo.NeuronDevices, device)
		}
	}
}

func texts[T ~string](in []T) []string {
	var out []string
	for _, v := range in {
		out = append(out, string(v))
	}
	return out
}
