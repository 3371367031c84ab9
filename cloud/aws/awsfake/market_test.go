// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/google/go-cmp/cmp"

	catalogue "karpenter/cloud/ec2"
)

// typeNames returns all types over all pages, and the number of pages.
func (l *lab) typeNames(in *ec2.DescribeInstanceTypesInput) (names []string, pages int) {
	l.Helper()
	for {
		out, err := l.EC2.DescribeInstanceTypes(l.Context(), in)
		l.must(err)
		pages++
		for _, t := range out.InstanceTypes {
			names = append(names, string(t.InstanceType))
		}
		if in.NextToken = out.NextToken; out.NextToken == nil {
			return names, pages
		}
	}
}

func TestAllTypesAreDescribed(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Types = nil })
	descriptions, err := catalogue.Descriptions()
	l.must(err)
	names, pages := l.typeNames(&ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100), Filters: []types.Filter{
		{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
		{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
	}})
	if len(names) != len(descriptions) || pages != (len(descriptions)+99)/100 {
		t.Errorf("%d types on %d pages, want %d", len(names), pages, len(descriptions))
	}
	out, err := l.EC2.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"p5.48xlarge", "m5.metal"}})
	l.must(err)
	p5, metal := out.InstanceTypes[0], out.InstanceTypes[1]
	if *p5.NetworkInfo.EfaInfo.MaximumEfaInterfaces != 32 || *p5.GpuInfo.Gpus[0].Count != 8 || p5.NeuronInfo != nil || *p5.MemoryInfo.SizeInMiB != 2097152 {
		t.Errorf("%+v", p5)
	}
	if metal.Hypervisor != "" || !*metal.BareMetal || metal.GpuInfo != nil || metal.InstanceStorageInfo != nil || metal.NetworkInfo.EfaInfo != nil {
		t.Errorf("%+v", metal)
	}
	// Callers may do with answers what they like.
	*metal.MemoryInfo.SizeInMiB = 1
	again, err := l.EC2.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.metal"}})
	l.must(err)
	if *again.InstanceTypes[0].MemoryInfo.SizeInMiB != 393216 {
		t.Error("an answer shares memory with the account")
	}
}

func TestTypesCanBeAskedForAndWithdrawn(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	_, err := l.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	l.refused(err, "DryRunOperation")
	_, err = l.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m9.huge"}})
	l.refused(err, "InvalidInstanceType")
	_, err = l.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(101)})
	l.refused(err, "InvalidParameterValue")
	_, err = l.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{NextToken: aws.String("?")})
	l.refused(err, "InvalidNextToken")
	_, err = l.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{Filters: filters("colour", "red")})
	l.refused(err, "InvalidParameterValue")

	restore := l.Withdraw("m5.*")
	names, _ := l.typeNames(&ec2.DescribeInstanceTypesInput{})
	if diff := cmp.Diff([]string{"c5.large", "m6g.large", "p5.48xlarge", "t3.large"}, names); diff != "" {
		t.Error(diff)
	}
	restore()
	l.Offer("m5.large", "us-west-2b", false)
	out, err := l.EC2.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: filters("instance-type", "m5.large")})
	l.must(err)
	var zones []string
	for _, o := range out.InstanceTypeOfferings {
		zones = append(zones, *o.Location)
	}
	if diff := cmp.Diff([]string{"us-west-2a", "us-west-2c"}, zones); diff != "" {
		t.Error(diff)
	}
}

func TestSpotPrices(t *testing.T) {
	l := newLab(t, nil)
	start := l.clock.Now()
	history := func(from time.Time) []string {
		out, err := l.EC2.DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{
			StartTime: &from, MaxResults: aws.Int32(2000), ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, Filters: filters("instance-type", "m5.large", "availability-zone", "us-west-2a"),
		})
		l.must(err)
		var prices []string
		for _, p := range out.SpotPriceHistory {
			prices = append(prices, *p.SpotPrice)
		}
		return prices
	}
	first, _ := l.Price(Pool{"m5.large", "us-west-2a", Spot})
	onDemand, _ := l.Price(Pool{"m5.large", "us-west-2a", OnDemand})
	if onDemand != 0.096 || first < 0.25*onDemand || first > 0.45*onDemand {
		t.Errorf("m5.large for %v as spot, %v on demand", first, onDemand)
	}
	drawn := history(start)
	l.clock.Step(time.Hour)
	l.SetSpotPrice("m5.large", "us-west-2a", 0.05)
	l.clock.Step(time.Hour)
	if diff := cmp.Diff([]string{"0.050000"}, history(l.clock.Now())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append([]string{"0.050000"}, drawn...), history(start)); diff != "" {
		t.Error(diff)
	}
	l.SetSpotPrice("m5.large", "", 0)
	if got := history(l.clock.Now()); got != nil {
		t.Errorf("prices of what is not sold: %v", got)
	}
	l.fleet(l.request(Spot, 1, l.override("m5.large", 0)), "m5.large a InvalidFleetConfiguration")
}

// The filters and the path to the price are those that readers of the price list
// use.
func TestOnDemandPrices(t *testing.T) {
	l := newLab(t, nil)
	list := func(tenancy, family string) map[string]string {
		in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(100)}
		for field, value := range map[string]string{
			"regionCode": "us-west-2", "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux", "capacitystatus": "Used",
			"marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family,
		} {
			in.Filters = append(in.Filters, pricetypes.Filter{Field: &field, Type: pricetypes.FilterTypeTermMatch, Value: &value})
		}
		prices := map[string]string{}
		for {
			out, err := l.Pricing.GetProducts(t.Context(), in)
			l.must(err)
			for _, text := range out.PriceList {
				var doc struct {
					Product struct {
						Attributes struct{ InstanceType string }
					}
					Terms struct {
						OnDemand map[string]struct {
							PriceDimensions map[string]struct{ PricePerUnit struct{ USD string } }
						}
					}
				}
				l.must(json.Unmarshal([]byte(text), &doc))
				for _, term := range doc.Terms.OnDemand {
					for _, dimension := range term.PriceDimensions {
						prices[doc.Product.Attributes.InstanceType] = dimension.PricePerUnit.USD
					}
				}
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				return prices
			}
		}
	}
	shared, metal := list("Shared", "Compute Instance"), list("Dedicated", "Compute Instance (bare metal)")
	if shared["m5.large"] != "0.0960000000" || shared["m5.metal"] != "" || metal["m5.metal"] == "" || len(shared) < 1000 || len(metal) < 100 {
		t.Errorf("%d shared, %d metal; m5.large %s, m5.metal %s", len(shared), len(metal), shared["m5.large"], metal["m5.metal"])
	}
	l.SetOnDemandPrice("m5.large", 0)
	if price, listed := list("Shared", "Compute Instance")["m5.large"]; listed {
		t.Errorf("m5.large is listed for %s", price)
	}
	_, err := l.Pricing.GetProducts(t.Context(), &pricing.GetProductsInput{ServiceCode: aws.String("AmazonS3")})
	l.refused(err, "InvalidParameterException")
}
