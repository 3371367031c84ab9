// SPDX-License-Identifier: Apache-2.0

// Package retail reads what VM sizes cost from Azure's Retail Prices API, which
// needs no credentials. It knows the public cloud only.
package retail

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// Endpoint is where the API is.
const Endpoint = "https://prices.azure.com/api/retail/prices"

const (
	apiVersion = "2023-01-01-preview"
	mostPages  = 1000
)

// Prices are what Linux instances cost per hour in a region, by size.
type Prices struct {
	OnDemand, Spot map[string]model.Price
}

// item is a row of the price list.
type item struct {
	ArmSkuName           string    `json:"armSkuName"`
	SkuName              string    `json:"skuName"`
	ProductName          string    `json:"productName"`
	MeterName            string    `json:"meterName"`
	RetailPrice          float64   `json:"retailPrice"`
	UnitOfMeasure        string    `json:"unitOfMeasure"`
	Type                 string    `json:"type"`
	EffectiveStartDate   time.Time `json:"effectiveStartDate"`
	IsPrimaryMeterRegion bool      `json:"isPrimaryMeterRegion"`
}

// Fetch reads the prices of the region from the endpoint, all pages of them.
func Fetch(ctx context.Context, client *http.Client, endpoint, region string) (Prices, error) {
	var filter []string
	for _, f := range []struct{ field, value string }{
		{"priceType", "Consumption"}, {"currencyCode", "USD"}, {"serviceFamily", "Compute"}, {"serviceName", strings.ReplaceAll("Virtual_Machines", "_", " ")}, {"armRegionName", region},
	} {
		filter = append(filter, f.field+" eq '"+f.value+"'")
	}
	next := endpoint + "?" + url.Values{"api-version": {apiVersion}, "$filter": {strings.Join(filter, " and ")}}.Encode()
	best := map[bool]map[string]item{true: {}, false: {}} // by whether it is spot
	for range mostPages {
		var page struct {
			Items        []item
			NextPageLink string
		}
		if err := get(ctx, client, next, &page); err != nil {
			return Prices{}, fmt.Errorf("read Azure's retail prices of %s: %w", region, err)
		}
		for _, row := range page.Items {
			row.add(best)
		}
		if next = page.NextPageLink; next == "" {
			return Prices{OnDemand: prices(best[false]), Spot: prices(best[true])}, nil
		}
	}
	return Prices{}, fmt.Errorf("read Azure's retail prices of %s: more than %d pages", region, mostPages)
}

func get(ctx context.Context, client *http.Client, from string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %.200s", answer.Status, body)
	}
	return json.Unmarshal(body, into)
}

// add keeps the row if it is of Linux instances and better than the one there is.
func (row item) add(best map[bool]map[string]item) {
	if row.ArmSkuName == "" || strings.HasSuffix(row.ProductName, " Windows") || strings.HasSuffix(row.MeterName, " Low Priority") {
		return
	}
	of := best[strings.HasSuffix(row.SkuName, " Spot")]
	if old, ok := of[row.ArmSkuName]; !ok || compare(row, old) > 0 {
		of[row.ArmSkuName] = row
	}
}

// compare orders rows of one size: consumption by the hour is better, then the
// primary meter, then what holds since later, then what costs less, so that the
// order of rows does not matter.
func compare(a, b item) int {
	return cmp.Or(
		better(a.Type == "Consumption", b.Type == "Consumption"),
		better(a.UnitOfMeasure == "1 Hour", b.UnitOfMeasure == "1 Hour"),
		better(a.IsPrimaryMeterRegion, b.IsPrimaryMeterRegion),
		a.EffectiveStartDate.Compare(b.EffectiveStartDate),
		cmp.Compare(b.RetailPrice, a.RetailPrice),
	)
}

func better(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func prices(rows map[string]item) map[string]model.Price {
	out := make(map[string]model.Price, len(rows))
	for size, row := range rows {
		out[size] = azurevm.Price(row.RetailPrice)
	}
	return out
}
