// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"karpenter/model"
)

//go:embed prices/*.json
var priceFiles embed.FS

// PriceTable is what types cost on demand in a region on a day: Linux on shared
// hardware, and metal, which is dedicated.
type PriceTable struct {
	Region   string             `json:"region"`
	Source   string             `json:"source"`
	Date     string             `json:"date"`     // 2006-01-02
	Currency string             `json:"currency"` // USD; in China, CNY
	OnDemand map[string]float64 `json:"onDemand"` // by type, per hour
}

// PriceTables returns the price tables in the program, by region. The result is
// the caller's.
func PriceTables() ([]PriceTable, error) {
	names, err := fs.Glob(priceFiles, "prices/*.json")
	if err != nil {
		return nil, fmt.Errorf("ec2 prices: %w", err)
	}
	var out []PriceTable
	for _, name := range names {
		text, err := priceFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("ec2 prices: %w", err)
		}
		var table PriceTable
		if err := json.Unmarshal(text, &table); err != nil {
			return nil, fmt.Errorf("ec2 prices: %s: %w", path.Base(name), err)
		}
		out = append(out, table)
	}
	slices.SortFunc(out, func(a, b PriceTable) int { return strings.Compare(a.Region, b.Region) })
	return out, nil
}

// StartPrices are the prices that are used until AWS has answered, or if AWS
// does not answer.
type StartPrices struct {
	OnDemand  map[string]model.Price // by type
	Table     PriceTable             // that they are from, without its prices
	Estimated int                    // how many of them the table does not have
}

// fallbackRegion is the region whose prices stand in for those of other regions.
const fallbackRegion = "us-east-1"

// Start returns the prices of the region's table. If the region has none, they are
// those of the table of its partition, such as cn-north-1 for cn-northwest-1, and
// otherwise those of us-east-1. The result is the caller's.
func Start(region string) (*StartPrices, error) {
	tables, err := PriceTables()
	if err != nil {
		return nil, err
	}
	table := find(tables, func(t *PriceTable) bool { return t.Region == region })
	if table == nil {
		table = find(tables, func(t *PriceTable) bool { return partition(t.Region) == partition(region) })
	}
	if table == nil || partition(region) == partition(fallbackRegion) && table.Region != region {
		table = find(tables, func(t *PriceTable) bool { return t.Region == fallbackRegion })
	}
	if table == nil {
		return nil, errors.New("ec2 prices: no tables")
	}
	out := &StartPrices{OnDemand: map[string]model.Price{}, Table: *table}
	out.Table.OnDemand = nil
	for name, price := range table.OnDemand {
		out.OnDemand[name] = priceOf(price)
	}
	return out, nil
}

// StartWithEstimates is Start for regions whose prices AWS does not tell. Types
// that are in other tables only get an estimate: the price there times the median
// ratio between the two tables. Without it, a type that is newer than the
// region's table could never be launched on demand.
func StartWithEstimates(region string) (*StartPrices, error) {
	out, err := Start(region)
	if err != nil {
		return nil, err
	}
	tables, err := PriceTables()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(tables, func(a, b PriceTable) int { return cmp.Compare(distance(region, &a), distance(region, &b)) })
	known := out.OnDemand
	for i := range tables {
		ratio := medianRatio(known, tables[i].OnDemand)
		if ratio == 0 || tables[i].Region == out.Table.Region {
			continue
		}
		for name, price := range tables[i].OnDemand {
			if _, ok := out.OnDemand[name]; !ok {
				out.OnDemand[name] = priceOf(price * ratio)
				out.Estimated++
			}
		}
	}
	return out, nil
}

// distance orders tables by how much they tell of a region: first those of its
// partition, then that of us-east-1, which has most types, then the others.
func distance(region string, t *PriceTable) int {
	switch {
	case partition(t.Region) == partition(region):
		return 0
	case t.Region == fallbackRegion:
		return 1
	}
	return 2
}

// medianRatio returns the median of what types cost as known, compared with the
// table; 0 when they have no type in common.
func medianRatio(known map[string]model.Price, table map[string]float64) float64 {
	var ratios []float64
	for name, price := range table {
		if here, ok := known[name]; ok && price > 0 {
			ratios = append(ratios, here.Dollars()/price)
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// partition returns what the names of regions of one partition begin with, "" for
// the commercial regions.
func partition(region string) string {
	for _, prefix := range []string{"cn-", "us-gov-", "us-isof-", "us-isob-", "us-iso-", "eu-isoe-", "eusc-"} {
		if strings.HasPrefix(region, prefix) {
			return prefix
		}
	}
	return ""
}

func find(tables []PriceTable, is func(*PriceTable) bool) *PriceTable {
	for i := range tables {
		if is(&tables[i]) {
			return &tables[i]
		}
	}
	return nil
}

func priceOf(perHour float64) model.Price {
	return model.Price(math.Round(perHour * float64(model.Dollar)))
}
