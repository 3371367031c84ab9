// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/cloud/ec2"
)

// The ways to buy an instance, as Pool names them.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// Pool is capacity of one type in one zone, sold one way. In the methods of AWS
// an empty field stands for all.
type Pool struct{ Type, Zone, CapacityType string }

// place is a type in a zone.
type place struct{ typ, zone string }

// market is the capacity that EC2 offers.
type market struct {
	types    []types.InstanceTypeInfo // sorted by name
	byName   map[string]*types.InstanceTypeInfo
	onDemand map[string]float64    // by type, dollars per hour; missing: not in the price list
	extras   *ec2.ExtraPrices      // of volumes and addresses
	spot     map[place][]spotPrice // what changed since the account was made, in order of time
	opened   time.Time             // when the account was made
	left     map[Pool]int64        // how many more can be launched; missing: no limit
	withheld map[place]bool        // not offered there
	spoilt   map[Pool]error        // what launches from the pool come to
	hidden   map[string]bool       // types that EC2 does not speak of
}

type spotPrice struct {
	at      time.Time
	dollars float64
}

func newMarket(config Config, now time.Time) (market, error) {
	m := market{
		byName: map[string]*types.InstanceTypeInfo{}, onDemand: map[string]float64{}, spot: map[place][]spotPrice{}, opened: now,
		left: map[Pool]int64{}, withheld: map[place]bool{}, spoilt: map[Pool]error{}, hidden: map[string]bool{},
	}
	descriptions, err := ec2.Descriptions()
	if err != nil {
		return m, err
	}
	for i := range descriptions {
		if config.Types != nil && !slices.Contains(config.Types, descriptions[i].InstanceType) {
			continue
		}
		info, err := described(&descriptions[i])
		if err != nil {
			return m, err
		}
		m.types = append(m.types, info)
	}
	for i := range m.types {
		m.byName[string(m.types[i].InstanceType)] = &m.types[i]
	}
	for _, name := range config.Types {
		if m.byName[name] == nil {
			return m, fmt.Errorf("awsfake: Config.Types: EC2 describes no instance type %q", name)
		}
	}
	prices, err := ec2.Start(config.Region)
	if err != nil {
		return m, err
	}
	for name, price := range prices.OnDemand {
		m.onDemand[name] = price.Dollars()
	}
	m.extras, err = ec2.Extras(config.Region)
	return m, err
}

// SetExtraPrices changes what volumes and addresses cost.
func (a *AWS) SetExtraPrices(change func(*ec2.ExtraPrices)) {
	a.locked(func(time.Time) { change(a.market.extras) })
}

// described is EC2's answer about a type. Names and nesting of the description
// are EC2's, so that JSON carries it over; what EC2 leaves out of the types it
// does not concern is taken out again.
func described(d *ec2.Description) (types.InstanceTypeInfo, error) {
	var info types.InstanceTypeInfo
	text, err := json.Marshal(d)
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		return info, fmt.Errorf("awsfake: description of %s: %w", d.InstanceType, err)
	}
	if len(d.GpuInfo.Gpus) == 0 {
		info.GpuInfo = nil
	}
	if len(d.InferenceAcceleratorInfo.Accelerators) == 0 {
		info.InferenceAcceleratorInfo = nil
	}
	if len(d.NeuronInfo.NeuronDevices) == 0 {
		info.NeuronInfo = nil
	}
	if d.NetworkInfo.EfaInfo.MaximumEfaInterfaces == 0 {
		info.NetworkInfo.EfaInfo = nil
	}
	if d.ProcessorInfo.SustainedClockSpeedInGhz == 0 {
		info.ProcessorInfo.SustainedClockSpeedInGhz = nil
	}
	if d.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps == 0 {
		info.EbsInfo.EbsOptimizedInfo = nil
	}
	var interfaces int32
	for _, card := range d.NetworkInfo.NetworkCards {
		interfaces += int32(card.MaximumNetworkInterfaces)
	}
	n := info.NetworkInfo
	n.EfaSupported, n.MaximumNetworkInterfaces, n.MaximumNetworkCards = aws.Bool(n.EfaInfo != nil), &interfaces, aws.Int32(int32(len(n.NetworkCards)))
	n.Ipv6AddressesPerInterface, n.Ipv6Supported = n.Ipv4AddressesPerInterface, aws.Bool(true)
	info.InstanceStorageSupported = aws.Bool(d.InstanceStorageInfo != nil)
	info.SupportedVirtualizationTypes = []types.VirtualizationType{types.VirtualizationTypeHvm}
	info.SupportedRootDeviceTypes = []types.RootDeviceType{types.RootDeviceTypeEbs}
	info.CurrentGeneration = aws.Bool(true)
	return info, nil
}

// sold returns the types that EC2 speaks of.
func (m *market) sold() []*types.InstanceTypeInfo {
	out := make([]*types.InstanceTypeInfo, 0, len(m.types))
	for i := range m.types {
		if !m.hidden[string(m.types[i].InstanceType)] {
			out = append(out, &m.types[i])
		}
	}
	return out
}

// offered reports whether the type is sold in the zone at all.
func (m *market) offered(typ, zone string) bool {
	return m.byName[typ] != nil && !m.hidden[typ] && !m.withheld[place{typ, zone}]
}

// price is what an instance of the pool costs at a time, in dollars per hour; ok
// is false when it has no price.
func (m *market) price(p Pool, at time.Time) (dollars float64, ok bool) {
	if p.CapacityType != Spot {
		dollars, ok = m.onDemand[p.Type]
		return dollars, ok
	}
	if info := m.byName[p.Type]; info == nil || !slices.Contains(info.SupportedUsageClasses, types.UsageClassTypeSpot) {
		return 0, false
	}
	history := m.history(place{p.Type, p.Zone})
	for i := len(history) - 1; i >= 0; i-- {
		if !history[i].at.After(at) {
			return history[i].dollars, history[i].dollars > 0
		}
	}
	return 0, false
}

// history returns the spot prices since the account was made.
func (m *market) history(at place) []spotPrice {
	var out []spotPrice
	if onDemand := m.onDemand[at.typ]; onDemand > 0 {
		share := 0.25 + 0.20*float64(mixed(hashed(at.typ+" "+at.zone))%1000)/1000
		out = append(out, spotPrice{m.opened, onDemand * share})
	}
	return append(out, m.spot[at]...)
}

func hashed(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// take uses capacity for one instance of the pool, if there is any left.
func (m *market) take(p Pool) bool {
	left, limited := m.left[p]
	if limited && left <= 0 {
		return false
	}
	if limited {
		m.left[p] = left - 1
	}
	return true
}

// give takes one back.
func (m *market) give(p Pool) {
	if left, limited := m.left[p]; limited {
		m.left[p] = left + 1
	}
}

// pools returns those that p stands for.
func (a *AWS) pools(p Pool) []Pool {
	typs, zones, ways := []string{p.Type}, []string{p.Zone}, []string{p.CapacityType}
	if p.Type == "" {
		typs = slices.Sorted(maps.Keys(a.market.byName))
	}
	if p.Zone == "" {
		zones = a.zoneNames()
	}
	if p.CapacityType == "" {
		ways = []string{OnDemand, Spot}
	}
	var out []Pool
	for _, typ := range typs {
		for _, zone := range zones {
			for _, way := range ways {
				out = append(out, Pool{typ, zone, way})
			}
		}
	}
	return out
}

// Stock sets how many more instances of a pool can be launched. Terminated
// instances return their capacity. Negative is no limit.
func (a *AWS) Stock(p Pool, left int64) {
	a.locked(func(now time.Time) {
		defer a.record(now, a.ids, "Stock", stock{p, left})
		for _, pool := range a.pools(p) {
			if left < 0 {
				delete(a.market.left, pool)
			} else {
				a.market.left[pool] = left
			}
		}
	})
}

// Spoil makes launches from a pool fail with the code, among the errors of their
// fleet, until mended: for what EC2 refuses and this account would not.
func (a *AWS) Spoil(p Pool, code, message string) (mend func()) {
	set := func(err error) {
		a.locked(func(time.Time) {
			for _, pool := range a.pools(p) {
				a.market.spoilt[pool] = err
			}
		})
	}
	set(refuse(code, "%s", message))
	return func() { set(nil) }
}

// Offer says whether a type is sold in a zone at all; an empty name is all.
func (a *AWS) Offer(typ, zone string, offered bool) {
	a.locked(func(time.Time) {
		for _, p := range a.pools(Pool{typ, zone, OnDemand}) {
			a.market.withheld[place{p.Type, p.Zone}] = !offered
		}
	})
}

// Withdraw makes EC2 silent about the types that the pattern (with * and ?)
// names: they are neither described nor offered. Restore ends it.
func (a *AWS) Withdraw(pattern string) (restore func()) {
	var names []string
	a.locked(func(time.Time) {
		for name := range a.market.byName {
			if wildcard(pattern, name) && !a.market.hidden[name] {
				a.market.hidden[name] = true
				names = append(names, name)
			}
		}
	})
	return func() {
		a.locked(func(time.Time) {
			for _, name := range names {
				delete(a.market.hidden, name)
			}
		})
	}
}

// SetOnDemandPrice sets what a type costs on demand, in dollars per hour; 0
// takes it off the price list.
func (a *AWS) SetOnDemandPrice(typ string, dollars float64) {
	a.locked(func(time.Time) {
		if dollars == 0 {
			delete(a.market.onDemand, typ)
		} else {
			a.market.onDemand[typ] = dollars
		}
	})
}

// SetSpotPrice changes the spot price from now on, in dollars per hour; an empty
// name is all, 0 ends the sale as spot.
func (a *AWS) SetSpotPrice(typ, zone string, dollars float64) {
	a.locked(func(now time.Time) {
		defer a.record(now, a.ids, "SetSpotPrice", spotChange{typ, zone, dollars})
		for _, p := range a.pools(Pool{typ, zone, Spot}) {
			at := place{p.Type, p.Zone}
			a.market.spot[at] = append(a.market.spot[at], spotPrice{now, dollars})
		}
	})
}

// Price returns what an instance of the pool costs now, in dollars per hour, and
// whether it has a price.
func (a *AWS) Price(p Pool) (dollars float64, ok bool) {
	a.locked(func(now time.Time) { dollars, ok = a.market.price(p, now) })
	return dollars, ok
}
