// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"golang.org/x/sync/errgroup"

	awsclient "karpenter/cloud/aws/client"
	"karpenter/model"
)

const productsAtOnce = 100

// OnDemandPrices asks what types cost in the region: on shared hardware, and
// metal, which is dedicated.
func OnDemandPrices(ctx context.Context, api awsclient.Pricing, region string) (map[string]model.Price, error) {
	var virtual, metal map[string]model.Price
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		virtual, err = askProducts(both, api, region, "Shared", "Compute Instance")
		return err
	})
	group.Go(func() (err error) {
		metal, err = askProducts(both, api, region, "Dedicated", "Compute Instance (bare metal)")
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(virtual) == 0 || len(metal) == 0 {
		return nil, errors.New("no on-demand pricing found")
	}
	maps.Copy(virtual, metal)
	return virtual, nil
}

func askProducts(ctx context.Context, api awsclient.Pricing, region, tenancy, family string) (map[string]model.Price, error) {
	var filters []types.Filter
	for _, f := range []struct{ field, value string }{
		{"regionCode", region}, {"serviceCode", "AmazonEC2"}, {"preInstalledSw", "NA"}, {"operatingSystem", "Linux"},
		{"capacitystatus", "Used"}, {"marketoption", "OnDemand"}, {"tenancy", tenancy}, {"productFamily", family},
	} {
		filters = append(filters, types.Filter{Field: aws.String(f.field), Type: types.FilterTypeTermMatch, Value: aws.String(f.value)})
	}
	currency := currencyOf(region)
	out := map[string]model.Price{}
	pages := pricing.NewGetProductsPaginator(api, &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"), Filters: filters, MaxResults: aws.Int32(productsAtOnce),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("get products: %w", err)
		}
		for _, text := range page.PriceList {
			if name, price, ok := parseProduct(text, currency); ok {
				out[name] = price
			}
		}
	}
	return out, nil
}

// product is what counts of an entry of the price list.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				PricePerUnit map[string]string `json:"pricePerUnit"` // by currency
			} `json:"priceDimensions"`
		}
	} `json:"terms"`
}

// parseProduct reads an entry of the price list. Of several prices the highest
// counts; without any it is not ok.
func parseProduct(text, currency string) (name string, price model.Price, ok bool) {
	var p product
	if json.Unmarshal([]byte(text), &p) != nil || p.Product.Attributes.InstanceType == "" {
		return "", 0, false
	}
	for _, term := range p.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			if found, good := parsePrice(dimension.PricePerUnit[currency]); good {
				price = max(price, found)
			}
		}
	}
	return p.Product.Attributes.InstanceType, price, price > 0
}
