// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsclient "karpenter/cloud/aws/client"
	"karpenter/model"
)

// pricesAtOnce is the page size of spot prices.
const pricesAtOnce = 2000

// priceList is what types cost. It never changes.
type priceList struct {
	onDemand map[string]model.Price
	spot     map[string]map[string]model.Price // by type and zone; nil before the first answer
	asked    bool                              // prices on demand are AWS's, not those built in

	number  uint64            // of the list; each change makes a new one
	version map[string]uint64 // the list in which a type's prices changed last
	all     uint64            // and those of all types
}

// versionOf returns a number that grows when the prices of the type change.
func (p *priceList) versionOf(name string) uint64 { return max(p.all, p.version[name]) }

// next returns a copy of the list with one number more, to be changed.
func (p *priceList) next() *priceList {
	out := *p
	out.number++
	out.onDemand, out.version, out.spot = maps.Clone(p.onDemand), maps.Clone(p.version), maps.Clone(p.spot)
	if out.version == nil {
		out.version = map[string]uint64{}
	}
	return &out
}

// RefreshPrices asks what types cost on demand and as spot, and what volumes and
// addresses cost. If an answer lacks a price, the known price stays. A missing permission is
// logged once and is not an error.
func (c *Catalogue) RefreshPrices(ctx context.Context) error {
	_, err, _ := c.asking.Do("prices", func() (any, error) {
		var onDemand, spot, extras error
		var all errgroup.Group
		all.Go(func() error { onDemand = c.refreshOnDemand(ctx); return nil })
		all.Go(func() error { spot = c.refreshSpot(ctx); return nil })
		all.Go(func() error { extras = c.refreshExtras(ctx); return nil })
		_ = all.Wait() // the errors are in the variables
		return nil, c.unlessRefused(ctx, onDemand, spot, extras)
	})
	return err
}

// unlessRefused joins the errors, except those about missing permissions, which
// it logs when they are new.
func (c *Catalogue) unlessRefused(ctx context.Context, errs ...error) error {
	var refused, others []error
	for _, err := range errs {
		if awsclient.Unauthorized(err) {
			refused = append(refused, err)
		} else {
			others = append(others, err)
		}
	}
	text := ""
	if len(refused) > 0 {
		text = awsclient.Code(refused[0])
	}
	c.mu.Lock()
	isNew := text != "" && text != c.said
	c.said = text
	c.mu.Unlock()
	if isNew {
		log.FromContext(ctx).Error(errors.Join(refused...),
			"going on with the prices that are known; allow the controller pricing:GetProducts and ec2:DescribeSpotPriceHistory")
	}
	return errors.Join(others...)
}

// change applies edit to a copy of the price list, and replaces the list if
// edit reports a change.
func (c *Catalogue) change(edit func(*priceList) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.prices.Load().next()
	if edit(list) {
		c.prices.Store(list)
	}
}

func (c *Catalogue) refreshOnDemand(ctx context.Context) error {
	if c.config.Pricing == nil || !awsclient.PricingServed(c.config.Cluster.Region) {
		c.sayBuiltIn(ctx)
		return nil
	}
	found, err := OnDemandPrices(ctx, c.config.Pricing, c.config.Cluster.Region)
	if err != nil {
		return err
	}
	c.change(func(list *priceList) bool {
		if list.asked {
			kept := withoutCollapsed(&c.doubts.onDemand, found, func(name string) model.Price { return list.onDemand[name] })
			sayKept(ctx, "on-demand", kept)
		}
		changed := !list.asked
		list.asked = true
		for name, price := range found {
			if list.onDemand[name] != price {
				list.onDemand[name], list.version[name], changed = price, list.number, true
			}
		}
		return changed
	})
	return nil
}

// sayBuiltIn logs once which built-in on-demand prices are used, because AWS is
// not asked.
func (c *Catalogue) sayBuiltIn(ctx context.Context) {
	c.builtIn.Do(func() {
		log.FromContext(ctx).Info("on-demand prices are those built into the program; correct them with NodeOverlays if they differ from what you pay",
			"region", c.config.Cluster.Region, "prices of", c.start.Table.Region, "date", c.start.Table.Date, "currency", c.start.Table.Currency,
			"types", len(c.start.OnDemand), "estimated", c.start.Estimated)
	})
}

func (c *Catalogue) refreshSpot(ctx context.Context) error {
	found, err := askSpot(ctx, c.config.EC2, c.config.Clock.Now().UTC())
	if err != nil {
		return err
	}
	c.change(func(list *priceList) bool {
		if list.spot == nil {
			list.spot, list.all = map[string]map[string]model.Price{}, list.number
		}
		sayKept(ctx, "spot", withoutCollapsed(&c.doubts.spot, found, func(p place) model.Price { return list.spot[p.instanceType][p.zone] }))
		return list.mergeSpot(found)
	})
	return nil
}

// mergeSpot adds spot prices and reports whether anything is different.
func (p *priceList) mergeSpot(found map[place]model.Price) bool {
	changed := p.all == p.number
	cloned := map[string]bool{}
	for at, price := range found {
		if p.spot[at.instanceType][at.zone] == price {
			continue
		}
		if !cloned[at.instanceType] {
			zones := maps.Clone(p.spot[at.instanceType])
			if zones == nil {
				zones = map[string]model.Price{}
			}
			p.spot[at.instanceType], cloned[at.instanceType] = zones, true
		}
		p.spot[at.instanceType][at.zone] = price
		p.version[at.instanceType], changed = p.number, true
	}
	return changed
}

// withoutCollapsed removes doubtful prices from an answer, and returns how
// many: if many prices have fallen to less than a fifth, these are doubted. The
// spot prices of a few types can fall so far between two answers, but not those
// of many.
func withoutCollapsed[K comparable](doubts *quarantine[K], found map[K]model.Price, before func(K) model.Price) int {
	var known []K
	for k := range found {
		if before(k) > 0 {
			known = append(known, k)
		}
	}
	kept := doubts.kept(known, func(k K) bool { return found[k]*5 >= before(k) })
	for _, k := range kept {
		delete(found, k)
	}
	return len(kept)
}

func sayKept(ctx context.Context, what string, n int) {
	if n > 0 {
		log.FromContext(ctx).Info("many prices have collapsed in AWS's answer; the old ones are kept until the next answers agree", "capacityType", what, "prices", n)
	}
}

// askSpot asks for the current spot prices.
func askSpot(ctx context.Context, api EC2, now time.Time) (map[place]model.Price, error) {
	out := map[place]model.Price{}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(api, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
		StartTime:           &now, MaxResults: aws.Int32(pricesAtOnce),
	})
	latest := map[place]types.SpotPrice{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe spot price history: %w", err)
		}
		for _, p := range page.SpotPriceHistory {
			at := place{string(p.InstanceType), aws.ToString(p.AvailabilityZone)}
			price, ok := parsePrice(aws.ToString(p.SpotPrice))
			if known, seen := latest[at]; ok && (!seen || aws.ToTime(known.Timestamp).Before(aws.ToTime(p.Timestamp))) {
				latest[at], out[at] = p, price
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no spot pricing found")
	}
	return out, nil
}

// parsePrice reads dollars per hour; a price of nothing is none.
func parsePrice(text string) (model.Price, bool) {
	dollars, err := strconv.ParseFloat(text, 64)
	if err != nil || !(dollars > 0) || math.IsInf(dollars, 0) {
		return 0, false
	}
	price := model.Price(math.Round(dollars * float64(model.Dollar)))
	return price, price > 0
}
