// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"karpenter/model"
)

//go:embed extras/*.json
var extraFiles embed.FS

// ExtraPrices are what a node costs in a region beside its instance. Amounts are
// in the region's currency.
type ExtraPrices struct {
	Region     string                 `json:"region"`
	Source     string                 `json:"source"`
	Date       string                 `json:"date"` // 2006-01-02
	Currency   string                 `json:"currency"`
	Volumes    map[string]VolumePrice `json:"volumes"`    // by volume type, such as gp3
	PublicIPv4 float64                `json:"publicIPv4"` // of an address per hour
}

// VolumePrice is what EBS volumes of a type cost per month.
type VolumePrice struct {
	GiB float64 `json:"gib"`
	// IOPS is the price of one I/O operation per second, by tier: up to 32,000, up to
	// 64,000 and above. A tier that is missing costs as much as the one before.
	IOPS  []float64 `json:"iops,omitempty"`
	MiBps float64   `json:"mibps,omitempty"` // of throughput
}

// ExtraTables returns the extra prices in the program, by region. The result is the
// caller's.
func ExtraTables() ([]ExtraPrices, error) {
	names, err := fs.Glob(extraFiles, "extras/*.json")
	if err != nil {
		return nil, fmt.Errorf("ec2 extra prices: %w", err)
	}
	var out []ExtraPrices
	for _, name := range names {
		text, err := extraFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("ec2 extra prices: %w", err)
		}
		var table ExtraPrices
		if err := json.Unmarshal(text, &table); err != nil {
			return nil, fmt.Errorf("ec2 extra prices: %s: %w", path.Base(name), err)
		}
		out = append(out, table)
	}
	slices.SortFunc(out, func(a, b ExtraPrices) int { return strings.Compare(a.Region, b.Region) })
	return out, nil
}

// Extras returns the extra prices of the region. If there are none, they are those
// of us-east-1; where instances are sold in another currency, times the median
// ratio of the prices of instances, so that both can be added up. Region says whose
// prices they are. The result is the caller's.
func Extras(region string) (*ExtraPrices, error) {
	tables, err := ExtraTables()
	if err != nil {
		return nil, err
	}
	for i := range tables {
		if tables[i].Region == region {
			return &tables[i], nil
		}
	}
	i := slices.IndexFunc(tables, func(t ExtraPrices) bool { return t.Region == fallbackRegion })
	if i < 0 {
		return nil, errors.New("ec2 extra prices: none for " + fallbackRegion)
	}
	out := &tables[i]
	here, err := Start(region)
	if err != nil {
		return nil, err
	}
	if here.Table.Currency == out.Currency {
		return out, nil
	}
	there, err := Start(fallbackRegion)
	if err != nil {
		return nil, err
	}
	dollars := map[string]float64{}
	for name, price := range there.OnDemand {
		dollars[name] = price.Dollars()
	}
	out.scale(medianRatio(here.OnDemand, dollars))
	out.Currency = here.Table.Currency
	return out, nil
}

func (p *ExtraPrices) scale(by float64) {
	p.PublicIPv4 *= by
	for name, v := range p.Volumes {
		v.GiB *= by
		v.MiBps *= by
		for i := range v.IOPS {
			v.IOPS[i] *= by
		}
		p.Volumes[name] = v
	}
}

// Clone returns a copy that shares nothing.
func (p *ExtraPrices) Clone() *ExtraPrices {
	out := *p
	out.Volumes = make(map[string]VolumePrice, len(p.Volumes))
	for name, v := range p.Volumes {
		v.IOPS = slices.Clone(v.IOPS)
		out.Volumes[name] = v
	}
	return &out
}

// hoursPerMonth is how AWS turns monthly prices into hourly ones: 365 × 24 ÷ 12.
const hoursPerMonth = 730

// Storage returns the price of a volume's size per hour.
func (v VolumePrice) Storage(gib int64) model.Price {
	return priceOf(float64(gib) * v.GiB / hoursPerMonth)
}

// What every gp3 volume has without charge.
const (
	freeIOPS  = 3000
	freeMiBps = 125
)

// ProvisionedIOPS returns how many I/O operations per second of a volume are
// charged, and their price per hour. Only gp3, io1 and io2 are charged by them.
func (v VolumePrice) ProvisionedIOPS(volumeType string, iops int64) (charged int64, price model.Price) {
	if len(v.IOPS) == 0 || iops <= 0 {
		return 0, 0
	}
	free := int64(0)
	if volumeType == "gp3" {
		free = freeIOPS
	}
	var perMonth float64
	for tier, from := range []int64{0, 32_000, 64_000} {
		to := []int64{32_000, 64_000, iops}[tier]
		if n := min(iops, to) - max(from, free); n > 0 {
			perMonth += float64(n) * v.IOPS[min(tier, len(v.IOPS)-1)]
		}
	}
	return max(0, iops-free), priceOf(perMonth / hoursPerMonth)
}

// ProvisionedThroughput returns how many MiB/s of a gp3 volume are charged, and
// their price per hour.
func (v VolumePrice) ProvisionedThroughput(mibps int64) (charged int64, price model.Price) {
	if v.MiBps == 0 || mibps <= freeMiBps {
		return 0, 0
	}
	charged = mibps - freeMiBps
	return charged, priceOf(float64(charged) * v.MiBps / hoursPerMonth)
}

// Address returns the price of a public IPv4 address per hour.
func (p *ExtraPrices) Address() model.Price { return priceOf(p.PublicIPv4) }
