// SPDX-License-Identifier: Apache-2.0

package azurevm

import (
	_ "embed"
	"fmt"
	"math"

	"karpenter/model"
)

//go:embed prices.json.gz
var prices []byte

// fallbackRegion is whose prices are taken for a region without any.
const fallbackRegion = "eastus"

// Prices are what sizes cost per hour in a region, by name.
type Prices struct {
	Region   string // whose prices they are
	Date     string // of OnDemand, 2006-01-02
	OnDemand map[string]model.Price
	Spot     map[string]model.Price // nil = none are known
}

// StaticPrices returns the prices of the region, or those of eastus if there are
// none of the region. The result is the caller's.
func StaticPrices(region string) (Prices, error) {
	var table struct {
		AsOf     string                        `json:"asOf"`
		OnDemand map[string]map[string]float64 `json:"onDemand"`
		Spot     map[string]map[string]float64 `json:"spot"`
	}
	if err := decode(prices, &table); err != nil {
		return Prices{}, fmt.Errorf("azure prices: %w", err)
	}
	if _, ok := table.OnDemand[region]; !ok {
		region = fallbackRegion
	}
	return Prices{
		Region:   region,
		Date:     table.AsOf,
		OnDemand: amounts(table.OnDemand[region]),
		Spot:     amounts(table.Spot[region]),
	}, nil
}

func amounts(dollars map[string]float64) map[string]model.Price {
	if dollars == nil {
		return nil
	}
	out := make(map[string]model.Price, len(dollars))
	for size, price := range dollars {
		out[size] = Price(price)
	}
	return out
}

// Price returns an amount of dollars per hour as a price.
func Price(dollars float64) model.Price {
	return model.Price(math.Round(dollars * float64(model.Dollar)))
}
