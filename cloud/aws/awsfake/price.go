// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
)

var spotFilters = resources[types.SpotPrice]{fields: fields[types.SpotPrice]{
	"instance-type":        one(func(p types.SpotPrice) types.InstanceType { return p.InstanceType }),
	"availability-zone":    pointer(func(p types.SpotPrice) *string { return p.AvailabilityZone }),
	"availability-zone-id": pointer(func(p types.SpotPrice) *string { return p.AvailabilityZoneId }),
	"product-description":  one(func(p types.SpotPrice) types.RIProductDescription { return p.ProductDescription }),
	"spot-price":           pointer(func(p types.SpotPrice) *string { return p.SpotPrice }),
}}

// DescribeSpotPriceHistory returns the spot prices in force from the start time
// on, newest first: the one that held at the start, and each change since.
func (e ec2API) DescribeSpotPriceHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, _ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return answer(ctx, e.a, "DescribeSpotPriceHistory", in, func(now time.Time) (*ec2.DescribeSpotPriceHistoryOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, err := spotFilters.pick(e.a.spotPrices(in, now), in.Filters)
		if err != nil {
			return nil, err
		}
		size := in.MaxResults // more than EC2's most is its most
		if size != nil && *size > 1000 {
			size = aws.Int32(1000)
		}
		part, next, err := page(found, pages{1, 1000, 1000}, size, in.NextToken)
		if err != nil {
			return nil, err
		}
		if next == nil {
			next = aws.String("") // as EC2 ends this list
		}
		return &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: copied(part), NextToken: next}, nil
	})
}

func (a *AWS) spotPrices(in *ec2.DescribeSpotPriceHistoryInput, now time.Time) []types.SpotPrice {
	from, to := a.market.opened, now
	if in.StartTime != nil {
		from = *in.StartTime
	}
	if in.EndTime != nil {
		to = *in.EndTime
	}
	var out []types.SpotPrice
	for _, t := range a.market.sold() {
		if !slices.Contains(t.SupportedUsageClasses, types.UsageClassTypeSpot) || len(in.InstanceTypes) > 0 && !slices.Contains(in.InstanceTypes, t.InstanceType) {
			continue
		}
		for _, z := range a.zones {
			if in.AvailabilityZone != nil && *in.AvailabilityZone != z.name || !a.market.offered(string(t.InstanceType), z.name) {
				continue
			}
			out = append(out, a.changes(string(t.InstanceType), z, from, to, in.ProductDescriptions)...)
		}
	}
	slices.SortStableFunc(out, func(x, y types.SpotPrice) int { return y.Timestamp.Compare(*x.Timestamp) })
	return out
}

// changes are the prices of a type in a zone during a time.
func (a *AWS) changes(typ string, z zone, from, to time.Time, products []string) []types.SpotPrice {
	product := string(types.RIProductDescriptionLinuxUnix)
	if len(products) > 0 && !slices.Contains(products, product) {
		return nil
	}
	history := a.market.history(place{typ, z.name})
	var out []types.SpotPrice
	for i, p := range history {
		replaced := i+1 < len(history) && !history[i+1].at.After(from)
		if p.at.After(to) || replaced || p.dollars == 0 {
			continue
		}
		out = append(out, types.SpotPrice{
			InstanceType: types.InstanceType(typ), AvailabilityZone: aws.String(z.name), AvailabilityZoneId: aws.String(z.id),
			ProductDescription: types.RIProductDescription(product), SpotPrice: aws.String(fmt.Sprintf("%.6f", p.dollars)), Timestamp: aws.Time(p.at),
		})
	}
	return out
}

// pricingAPI is the price list.
type pricingAPI struct{ a *AWS }

// GetProducts returns on-demand prices as the JSON documents of the price list.
// Filters of type TERM_MATCH compare attributes of products.
func (s pricingAPI) GetProducts(ctx context.Context, in *pricing.GetProductsInput, _ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	return answer(ctx, s.a, "GetProducts", in, func(time.Time) (*pricing.GetProductsOutput, error) {
		all, err := s.a.products(aws.ToString(in.ServiceCode))
		if err != nil {
			return nil, err
		}
		var found []string
		for _, p := range all {
			if p.matches(in.Filters) {
				text, err := json.Marshal(p.document(s.a))
				if err != nil {
					return nil, err
				}
				found = append(found, string(text))
			}
		}
		part, next, err := page(found, pages{1, 100, 100}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		return &pricing.GetProductsOutput{FormatVersion: aws.String("aws_v1"), PriceList: slices.Clone(part), NextToken: next}, nil
	})
}

// product is a line of the price list.
type product struct {
	family     string
	attributes map[string]string
	dollars    float64
	unit       string
	about      string // the product, in the description of its price
}

// products are all lines of the price list of a service.
func (a *AWS) products(service string) ([]product, error) {
	var out []product
	switch service {
	case "AmazonEC2":
		for _, name := range slices.Sorted(maps.Keys(a.market.onDemand)) {
			out = append(out, a.product(name))
		}
		return append(out, a.volumes()...), nil
	case "AmazonVPC":
		return a.addresses(), nil
	}
	return nil, &pricetypes.InvalidParameterException{Message: aws.String("Invalid service code: " + service)}
}

// volumes are the lines about EBS volumes: their size, operations and throughput.
func (a *AWS) volumes() []product {
	var out []product
	add := func(family, kind, group, usage, unit string, price float64) {
		attributes := map[string]string{
			"servicecode": "AmazonEC2", "regionCode": a.config.Region, "locationType": "AWS Region", "volumeApiName": kind, "usagetype": "EBS:" + usage + "." + kind,
		}
		if group != "" {
			attributes["group"] = group
		}
		out = append(out, product{family, attributes, price, unit, kind + " " + usage})
	}
	for _, kind := range slices.Sorted(maps.Keys(a.market.extras.Volumes)) {
		v := a.market.extras.Volumes[kind]
		add("Storage", kind, "", "VolumeUsage", "GB-Mo", v.GiB)
		for tier, price := range v.IOPS {
			group := "EBS IOPS"
			if tier > 0 {
				group = fmt.Sprintf("EBS IOPS Tier %d", tier+1)
			}
			add("System Operation", kind, group, "VolumeP-IOPS", "IOPS-Mo", price)
		}
		if v.MiBps > 0 {
			add("Provisioned Throughput", kind, "EBS Throughput", "VolumeP-Throughput", "GiBps-mo", v.MiBps*1024)
		}
	}
	add("System Operation", "standard", "EBS I/O Requests", "VolumeIOUsage", "IOs", 5e-8)
	return out
}

// addresses are the lines about public IPv4 addresses.
func (a *AWS) addresses() []product {
	var out []product
	for usage, price := range map[string]float64{"InUseAddress": a.market.extras.PublicIPv4, "IdleAddress": 2 * a.market.extras.PublicIPv4} {
		out = append(out, product{"VpcPublicIPv4Address", map[string]string{
			"servicecode": "AmazonVPC", "regionCode": a.config.Region, "locationType": "AWS Region", "group": "VPCPublicIPv4Address",
			"usagetype": "PublicIPv4:" + usage,
		}, price, "Hrs", "public IPv4 " + usage})
	}
	slices.SortFunc(out, func(a, b product) int { return strings.Compare(a.about, b.about) })
	return out
}

func (a *AWS) product(typ string) product {
	p := product{"Compute Instance", map[string]string{
		"instanceType": typ, "regionCode": a.config.Region, "servicecode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux", "capacitystatus": "Used",
		"marketoption": "OnDemand", "tenancy": "Shared", "locationType": "AWS Region", "licenseModel": "No License required",
	}, a.market.onDemand[typ], "Hrs", "On Demand Linux " + typ + " Instance Hour"}
	if strings.Contains(typ, ".metal") {
		p.family, p.attributes["tenancy"] = "Compute Instance (bare metal)", "Dedicated"
	}
	if info := a.market.byName[typ]; info != nil {
		p.attributes["vcpu"] = fmt.Sprint(*info.VCpuInfo.DefaultVCpus)
		p.attributes["memory"] = fmt.Sprintf("%g GiB", float64(*info.MemoryInfo.SizeInMiB)/1024)
	}
	return p
}

func (p product) matches(filters []pricetypes.Filter) bool {
	for _, f := range filters {
		value, ok := "", false
		for key, attribute := range p.attributes { // names of filters ignore case
			if strings.EqualFold(key, aws.ToString(f.Field)) {
				value, ok = attribute, true
			}
		}
		if strings.EqualFold(aws.ToString(f.Field), "productFamily") {
			value, ok = p.family, true
		}
		if !ok || !strings.EqualFold(value, aws.ToString(f.Value)) {
			return false
		}
	}
	return true
}

// document is the product in the shape of the price list.
func (p product) document(a *AWS) map[string]any {
	sku := fmt.Sprintf("%016X", hashed(p.about))
	term, rate := sku+".JRTCKXETXF", sku+".JRTCKXETXF.6YS6EN2CT7"
	currency := "USD"
	if strings.HasPrefix(a.config.Region, "cn-") {
		currency = "CNY"
	}
	return map[string]any{
		"serviceCode": p.attributes["servicecode"], "version": "20261101000000", "publicationDate": "2026-11-01T00:00:00Z",
		"product": map[string]any{"productFamily": p.family, "sku": sku, "attributes": p.attributes},
		"terms": map[string]any{"OnDemand": map[string]any{term: map[string]any{
			"offerTermCode": "JRTCKXETXF", "sku": sku, "effectiveDate": "2026-11-01T00:00:00Z", "termAttributes": map[string]any{},
			"priceDimensions": map[string]any{rate: map[string]any{
				"rateCode": rate, "unit": p.unit, "beginRange": "0", "endRange": "Inf", "appliesTo": []string{},
				"description":  fmt.Sprintf("$%g per %s", p.dollars, p.about),
				"pricePerUnit": map[string]any{currency: fmt.Sprintf("%.10f", p.dollars)},
			}},
		}}},
	}
}
