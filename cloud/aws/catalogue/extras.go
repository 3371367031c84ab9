// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	awsv1 "karpenter/api/aws/v1"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/aws/instancetype"
	facts "karpenter/cloud/ec2"
)

// NodeExtras returns what each node of the class costs beside its instance, at the
// prices that are known now; see instancetype.NodeExtras for public.
func (c *Catalogue) NodeExtras(class *awsv1.EC2NodeClass, public []string) instancetype.Extras {
	return instancetype.NodeExtras(class, public, c.extras.Load())
}

// refreshExtras updates the prices of volumes and addresses. Prices that the
// answer lacks stay. It must not be called concurrently.
func (c *Catalogue) refreshExtras(ctx context.Context) error {
	if c.config.Pricing == nil || !awsclient.PricingServed(c.config.Cluster.Region) {
		return nil
	}
	next := c.extras.Load().Clone()
	if err := AskExtras(ctx, c.config.Pricing, c.config.Cluster.Region, next); err != nil {
		return err
	}
	c.extras.Store(next)
	return nil
}

// AskExtras asks what volumes and public IPv4 addresses cost in the region, and
// sets the prices that the answers have. After an error it has set nothing.
func AskExtras(ctx context.Context, api awsclient.Pricing, region string, into *facts.ExtraPrices) error {
	next, currency := into.Clone(), currencyOf(region)
	if next.Currency != currency { // estimates in another currency do not mix with AWS's prices
		next.Volumes, next.Currency = map[string]facts.VolumePrice{}, currency
	}
	for _, q := range []extraQuery{
		{"AmazonEC2", "productFamily", "Storage", setStorage},
		{"AmazonEC2", "productFamily", "System Operation", setIOPS},
		{"AmazonEC2", "productFamily", "Provisioned Throughput", setThroughput},
		{"AmazonVPC", "group", "VPCPublicIPv4Address", setAddress},
	} {
		if err := q.ask(ctx, api, region, next); err != nil {
			return err
		}
	}
	next.Region = region
	*into = *next
	return nil
}

// extraQuery is a question about products in the price list of a service, and what
// an answer sets.
type extraQuery struct {
	service, field, value string
	set                   func(*facts.ExtraPrices, *extraProduct)
}

func (q *extraQuery) ask(ctx context.Context, api awsclient.Pricing, region string, into *facts.ExtraPrices) error {
	var filters []types.Filter
	for _, f := range [][2]string{{"regionCode", region}, {"locationType", "AWS Region"}, {q.field, q.value}} {
		filters = append(filters, types.Filter{Field: aws.String(f[0]), Type: types.FilterTypeTermMatch, Value: aws.String(f[1])})
	}
	pages := pricing.NewGetProductsPaginator(api, &pricing.GetProductsInput{
		ServiceCode: aws.String(q.service), Filters: filters, MaxResults: aws.Int32(productsAtOnce),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("get products %s of %s: %w", q.value, q.service, err)
		}
		for _, text := range page.PriceList {
			if p, ok := parseExtra(text, into.Currency); ok {
				q.set(into, p)
			}
		}
	}
	return nil
}

// currencyOf returns the currency of the region's price list.
func currencyOf(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "CNY"
	}
	return "USD"
}

// extraProduct has the relevant fields of an entry of the price list that is
// not about an instance.
type extraProduct struct {
	volumeType, group, usage, unit string
	price                          float64
}

func parseExtra(text, currency string) (*extraProduct, bool) {
	var p struct {
		Product struct {
			Attributes struct {
				VolumeAPIName string `json:"volumeApiName"`
				Group         string `json:"group"`
				UsageType     string `json:"usagetype"`
			} `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					Unit         string            `json:"unit"`
					PricePerUnit map[string]string `json:"pricePerUnit"` // by currency
				} `json:"priceDimensions"`
			}
		} `json:"terms"`
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		return nil, false
	}
	a := p.Product.Attributes
	out := &extraProduct{volumeType: a.VolumeAPIName, group: a.Group, usage: a.UsageType}
	for _, term := range p.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			if price, err := strconv.ParseFloat(d.PricePerUnit[currency], 64); err == nil && price > out.price && price < 1e6 {
				out.price, out.unit = price, d.Unit
			}
		}
	}
	return out, out.price > 0
}

func setStorage(into *facts.ExtraPrices, p *extraProduct) {
	if p.volumeType != "" && strings.Contains(p.usage, "EBS:VolumeUsage") && strings.EqualFold(p.unit, "GB-Mo") {
		v := into.Volumes[p.volumeType]
		v.GiB = p.price
		into.Volumes[p.volumeType] = v
	}
}

// setIOPS sets the price of a tier. The price list calls the tiers of io2 "EBS
// IOPS", "EBS IOPS Tier 2" and "EBS IOPS Tier 3".
func setIOPS(into *facts.ExtraPrices, p *extraProduct) {
	if p.volumeType == "" || !strings.HasPrefix(p.group, "EBS IOPS") || !strings.EqualFold(p.unit, "IOPS-Mo") {
		return
	}
	tier := 0
	if number, ok := strings.CutPrefix(p.group, "EBS IOPS Tier "); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 3 {
			return
		}
		tier = n - 1
	}
	v := into.Volumes[p.volumeType]
	for len(v.IOPS) <= tier {
		v.IOPS = append(v.IOPS, p.price)
	}
	v.IOPS[tier] = p.price
	into.Volumes[p.volumeType] = v
}

func setThroughput(into *facts.ExtraPrices, p *extraProduct) {
	price := p.price
	switch {
	case p.volumeType == "":
		return
	case strings.EqualFold(p.unit, "GiBps-mo"):
		price /= 1024
	case !strings.EqualFold(p.unit, "MiBps-mo"):
		return
	}
	v := into.Volumes[p.volumeType]
	v.MiBps = price
	into.Volumes[p.volumeType] = v
}

// setAddress sets the price of an address that is in use; the list has idle ones,
// too, and addresses of the user's own.
func setAddress(into *facts.ExtraPrices, p *extraProduct) {
	if strings.HasSuffix(p.usage, "PublicIPv4:InUseAddress") && strings.EqualFold(p.unit, "Hrs") {
		into.PublicIPv4 = p.price
	}
}
