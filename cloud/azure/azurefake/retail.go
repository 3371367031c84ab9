// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// PriceListPath is where the price list is. It needs no credential.
const PriceListPath = "/api/retail/prices"

// retailPage is how many rows a page of the price list has.
const retailPage = 1000

// retailRow is a row of the price list.
type retailRow struct {
	ArmSkuName           string  `json:"armSkuName"`
	SkuName              string  `json:"skuName"`
	ProductName          string  `json:"productName"`
	MeterName            string  `json:"meterName"`
	RetailPrice          float64 `json:"retailPrice"`
	UnitOfMeasure        string  `json:"unitOfMeasure"`
	Type                 string  `json:"type"`
	EffectiveStartDate   string  `json:"effectiveStartDate"`
	IsPrimaryMeterRegion bool    `json:"isPrimaryMeterRegion"`
	ArmRegionName        string  `json:"armRegionName"`
}

// PriceList serves the price list of the region, in pages. Between the prices of
// Linux are those of Windows and of an older kind of spot, which are others.
func (c *Cloud) PriceList() http.Handler {
	rows := c.retailRows()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("$skip")) // 0 on the first page
		from = min(max(from, 0), len(rows))
		end := min(from+retailPage, len(rows))
		answer := map[string]any{"Items": rows[from:end], "Count": end - from, "NextPageLink": nil}
		if end < len(rows) {
			query := r.URL.Query()
			query.Set("$skip", strconv.Itoa(end))
			answer["NextPageLink"] = "https://" + r.Host + r.URL.Path + "?" + query.Encode()
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(answer) // to a client that may be gone
	})
}

func (c *Cloud) retailRows() []retailRow {
	const windows = 1.8 // times what Linux costs
	var out []retailRow
	add := func(size, kind, product string, dollars float64) {
		out = append(out, retailRow{
			ArmSkuName: size, SkuName: size + kind, ProductName: size + product, MeterName: size + kind, RetailPrice: dollars,
			UnitOfMeasure: "1 Hour", Type: "Consumption", EffectiveStartDate: "2026-07-01T00:00:00Z", IsPrimaryMeterRegion: true, ArmRegionName: c.config.Region,
		})
	}
	for _, size := range slices.Sorted(maps.Keys(c.config.Prices.OnDemand)) {
		price := c.config.Prices.OnDemand[size].Dollars()
		add(size, "", " Series Windows", price*windows)
		add(size, "", " Series", price)
		add(size, " Low Priority", " Series", price/2)
		if spot, sold := c.config.Prices.Spot[size]; sold {
			add(size, " Spot", " Series", spot.Dollars())
		}
	}
	return out
}

// Price is what an offering costs per hour.
type Price struct {
	Place
	Dollars float64
}

// Prices returns what the sizes on sale cost everywhere. Spot that has no price
// of its own costs what on demand does.
func (c *Cloud) Prices() []Price {
	var out []Price
	for i := range c.config.SKUs {
		sku := &c.config.SKUs[i]
		onDemand, known := c.config.Prices.OnDemand[sku.Name]
		if !known {
			continue
		}
		for _, zone := range append(slices.Clone(sku.Zones), "") {
			out = append(out, Price{Place{sku.Name, zone, false}, onDemand.Dollars()},
				Price{Place{sku.Name, zone, true}, cmp.Or(c.config.Prices.Spot[sku.Name], onDemand).Dollars()})
		}
	}
	return out
}
