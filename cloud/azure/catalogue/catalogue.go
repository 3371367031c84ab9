// SPDX-License-Identifier: Apache-2.0

// Package catalogue knows the instance types of a region as an AKSNodeClass can
// have them: what they are, what they cost, and what of it can be launched now.
//
// Azure and its price list are asked by Refresh calls, which loops repeat. Types
// answers from memory, so it may be called as often as a plan is made. An answer
// that cannot be had leaves what was known. Quotas are believed for a while only:
// without news, every launch is tried.
//
// As long as nothing about an instance type has changed for a class, Types returns
// the same pointer for it.
package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/retail"
	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azurevm"
)

// How often each of them is to be refreshed.
const (
	SKUInterval   = 12 * time.Hour
	QuotaInterval = 10 * time.Minute
	PriceInterval = 12 * time.Hour
)

// believed is how long quotas are believed.
const believed = 15 * time.Minute

// Usage is how many vCPUs of a family the subscription uses, and may use.
type Usage struct{ Current, Limit int64 }

// Config is what a Catalogue works with. Everything is required but what says
// otherwise.
type Config struct {
	Clock     clock.PassiveClock
	Cluster   instancetype.Cluster
	GPUs      azurevm.GPUs
	Shortages *shortage.Log
	// Start is the prices until the price list was read.
	Start azurevm.Prices
	// SKUs, Usages and Prices ask Azure. Prices may be nil: then those of Start stay.
	SKUs   func(context.Context) ([]azurevm.SKU, error)
	Usages func(context.Context) (map[string]Usage, error) // by family
	Prices func(context.Context) (retail.Prices, error)
}

// Catalogue knows instance types. Safe for concurrent use.
type Catalogue struct {
	config Config

	mu       sync.Mutex
	facts    map[string]*instancetype.Facts
	names    []string // of facts, sorted
	usages   map[string]Usage
	usagesAt time.Time
	prices   retail.Prices
	changes  uint64 // of anything above
	views    map[instancetype.Class]*view
}

// view is the types of a class.
type view struct {
	stamp stamp
	types []*cloud.InstanceType
}

// stamp is what types depend on besides their class.
type stamp struct {
	changes, shortages uint64
	quotas             bool // are believed
}

// New returns a catalogue without types.
func New(c Config) *Catalogue {
	return &Catalogue{
		config: c,
		prices: retail.Prices{OnDemand: c.Start.OnDemand, Spot: c.Start.OnDemand}, // spot is not known yet
		views:  map[instancetype.Class]*view{},
	}
}

// RefreshSKUs asks Azure which sizes it offers. If the answer is an error or has no
// size that can be used, what was known stays.
func (c *Catalogue) RefreshSKUs(ctx context.Context) error {
	skus, err := c.config.SKUs(ctx)
	if err != nil {
		return fmt.Errorf("read the VM sizes of %s: %w", c.config.Cluster.Region, err)
	}
	facts := map[string]*instancetype.Facts{}
	for _, sku := range skus {
		f, err := instancetype.NewFacts(sku, c.config.GPUs)
		if err != nil {
			log.FromContext(ctx).V(1).Info("a VM size is not used", "reason", err.Error())
			continue
		}
		facts[sku.Name] = f
	}
	if len(facts) == 0 {
		return fmt.Errorf("read the VM sizes of %s: none of %d can be used", c.config.Cluster.Region, len(skus))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts, c.names = facts, slices.Sorted(maps.Keys(facts))
	c.changes++
	return nil
}

// RefreshQuotas asks Azure how many vCPUs the subscription may use.
func (c *Catalogue) RefreshQuotas(ctx context.Context) error {
	usages, err := c.config.Usages(ctx)
	if err != nil {
		return fmt.Errorf("read the compute quotas of %s: %w", c.config.Cluster.Region, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.usages, usages) {
		c.usages = maps.Clone(usages)
		c.changes++
	}
	c.usagesAt = c.config.Clock.Now()
	return nil
}

// RefreshPrices reads the price list. A list without prices is an error.
func (c *Catalogue) RefreshPrices(ctx context.Context) error {
	if c.config.Prices == nil {
		return nil
	}
	prices, err := c.config.Prices(ctx)
	if err == nil && len(prices.OnDemand) == 0 {
		err = errors.New("the price list is empty")
	}
	if err != nil {
		return fmt.Errorf("keeping the old prices of %s: %w", c.config.Cluster.Region, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(prices.Spot) == 0 {
		prices.Spot = c.prices.Spot
	}
	c.prices = prices
	c.changes++
	return nil
}

// Facts returns what is known of a size, nil if nothing is.
func (c *Catalogue) Facts(size string) *instancetype.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts[size]
}

// Types returns the instance types of the class for nodes with its version of
// Kubernetes, by name. The slice is the caller's, the types are not.
func (c *Catalogue) Types(_ context.Context, class *v1beta1.AKSNodeClass) ([]*cloud.InstanceType, error) {
	version, err := class.KubernetesVersion()
	if err != nil {
		return nil, err
	}
	of, now := instancetype.NewClass(class, version), c.config.Clock.Now()
	shortages := c.config.Shortages.Sequence(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.facts) == 0 {
		return nil, fmt.Errorf("the VM sizes of %s are not known yet", c.config.Cluster.Region)
	}
	current := stamp{c.changes, shortages, now.Sub(c.usagesAt) <= believed}
	v := c.views[of]
	if v == nil {
		c.forgetLocked()
		v = &view{}
		c.views[of] = v
	}
	if v.types == nil || v.stamp != current {
		v.types, v.stamp = c.makeLocked(&of, v.types, now), current
	}
	return slices.Clone(v.types), nil
}

// mostViews bounds the memory that classes of the past take.
const mostViews = 64

func (c *Catalogue) forgetLocked() {
	if len(c.views) >= mostViews {
		clear(c.views)
	}
}

// makeLocked makes the types of a class, and keeps old ones that are equal.
func (c *Catalogue) makeLocked(class *instancetype.Class, old []*cloud.InstanceType, now time.Time) []*cloud.InstanceType {
	market := &instancetype.Market{
		OnDemand: c.prices.OnDemand,
		Spot:     c.prices.Spot,
		OSDisk:   azurevm.OSDiskPrice,
		Short: func(sku *azurevm.SKU, zone, capacityType string) bool {
			return c.config.Shortages.Short(sku, zone, capacityType, now)
		},
		Quota: func(family string, vCPUs int64) bool { return c.quotaLocked(family, vCPUs, now) },
	}
	out := make([]*cloud.InstanceType, 0, len(c.names))
	for _, name := range c.names {
		facts := c.facts[name]
		if !instancetype.Supported(facts, class) {
			continue
		}
		t := instancetype.New(facts, class, &c.config.Cluster, market)
		if i, ok := slices.BinarySearchFunc(old, name, func(t *cloud.InstanceType, name string) int { return strings.Compare(t.Name, name) }); ok && reflect.DeepEqual(old[i], t) {
			t = old[i]
		}
		out = append(out, t)
	}
	return out
}

// quotaLocked reports whether the subscription may use more vCPUs of the family, as
// far as is known.
func (c *Catalogue) quotaLocked(family string, vCPUs int64, now time.Time) bool {
	usage, known := c.usages[family]
	return !known || now.Sub(c.usagesAt) > believed || vCPUs <= usage.Limit-usage.Current
}
