// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	facts "karpenter/cloud/ec2"
	"karpenter/cloud/loop"
)

const (
	// Period is the time between two questions about types, and about prices.
	Period = 12 * time.Hour
	// DoubtPeriod is the time until EC2 is asked again after a doubtful answer.
	DoubtPeriod = 10 * time.Minute
)

// EC2 is the part of EC2 that knows types and spot prices.
type EC2 interface {
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error)
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
}

// Shifts returns the zones from which traffic is shifted away; see package
// zonalshift.
type Shifts interface {
	Shifted(zoneID string) bool
}

// Config configures a Catalogue. Its functions are called often and must answer
// from memory.
type Config struct {
	EC2     EC2
	Pricing awsclient.Pricing    // nil = prices on demand are those built in, as in an isolated VPC
	Cluster instancetype.Cluster // its Region is that of EC2
	Clock   clock.PassiveClock
	Metrics *Metrics

	Shortages *shortage.Log
	Memory    *instancetype.Memory
	Shifts    Shifts                // nil = none
	Formulas  *expression.Language  // nil = the gate NodeClassCEL is off
	Left      func(id string) int64 // launches left in a reservation; nil = the gate ReservedCapacity is off
	// Group returns the placement group of a class, nil when it has none. It may
	// ask EC2 now and then. Nil means no class has any.
	Group    func(context.Context, *awsv1.EC2NodeClass) (*instancetype.PlacementGroup, error)
	Overlays client.Reader // of NodeOverlays; nil = the gate NodeOverlay is off
}

// Catalogue is the instance types of a region. It may be used concurrently.
type Catalogue struct {
	config     Config
	bandwidth  map[string]int64         // in Mbit/s, as published, by type; 0 = EC2 gives none but in words
	branchENIs map[string]int64         // by type
	devices    map[string]facts.Devices // by type
	start      *facts.StartPrices
	builtIn    sync.Once // that these prices stay has been logged
	asking     singleflight.Group

	supply   atomic.Pointer[supply]
	prices   atomic.Pointer[priceList]
	overlays atomic.Pointer[overlayPrices]
	extras   atomic.Pointer[facts.ExtraPrices]

	mu     sync.Mutex // of what follows, and of replacing what is above
	doubts doubts
	said   string // the rejection that was logged last
	views  map[string]*view
}

// New returns a Catalogue that knows the prices built into the program and no
// types yet; see Refresh.
func New(config Config) (*Catalogue, error) {
	types, err := facts.Types()
	if err != nil {
		return nil, err
	}
	limits, err := facts.BranchLimits()
	if err != nil {
		return nil, err
	}
	devices, err := facts.DevicesOfTypes()
	if err != nil {
		return nil, err
	}
	start := facts.Start
	if !awsclient.PricingServed(config.Cluster.Region) {
		start = facts.StartWithEstimates
	}
	prices, err := start(config.Cluster.Region)
	if err != nil {
		return nil, err
	}
	extras, err := facts.Extras(config.Cluster.Region)
	if err != nil {
		return nil, err
	}
	c := &Catalogue{
		config: config, bandwidth: make(map[string]int64, len(types)), branchENIs: limits.BranchENIs, devices: devices.Types, start: prices, views: map[string]*view{},
	}
	for _, t := range types {
		c.bandwidth[t.Name] = t.NetworkMbps
	}
	c.supply.Store(&supply{})
	c.prices.Store(&priceList{onDemand: prices.OnDemand})
	c.overlays.Store(&overlayPrices{})
	c.extras.Store(extras)
	return c, nil
}

// Register adds the controllers providers.instancetype and providers.pricing to
// the manager, and under the gate NodeOverlay providers.overlayprices.
func (c *Catalogue) Register(mgr manager.Manager) error {
	if err := loop.After(mgr, "providers.instancetype", func(ctx context.Context) (time.Duration, error) {
		err := c.Refresh(ctx)
		if c.doubting() {
			return DoubtPeriod, err
		}
		return Period, err
	}); err != nil {
		return err
	}
	if err := loop.Every(mgr, "providers.pricing", Period, c.RefreshPrices); err != nil {
		return err
	}
	return c.registerOverlays(mgr)
}

// Types returns all types for nodes of the class, by name, including types
// without capacity now. The caller must not modify the result; see the package
// for the parts that stay the same between calls.
func (c *Catalogue) Types(ctx context.Context, class *awsv1.EC2NodeClass) ([]*cloud.InstanceType, error) {
	known := c.supply.Load()
	switch {
	case len(known.facts) == 0:
		return nil, errors.New("no instance types found")
	case len(known.zones) == 0:
		return nil, errors.New("no instance types offerings found")
	case len(class.Status.Subnets) == 0:
		return nil, &cloud.NodeClassNotReadyError{Err: fmt.Errorf("no subnets found: the status of EC2NodeClass %s has none", class.Name)}
	}
	var group *instancetype.PlacementGroup
	if c.config.Group != nil {
		var err error
		if group, err = c.config.Group(ctx, class); err != nil {
			return nil, fmt.Errorf("instance types of EC2NodeClass %s: %w", class.Name, err)
		}
	}
	return c.view(class).types(c, class, group), nil
}

// Type returns one type as nodes of the class have it.
func (c *Catalogue) Type(ctx context.Context, class *awsv1.EC2NodeClass, name string) (*cloud.InstanceType, error) {
	types, err := c.Types(ctx, class)
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(types, name, func(t *cloud.InstanceType, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		return nil, fmt.Errorf("instance type %s not found in cache", name)
	}
	return types[i], nil
}

// Facts returns the facts about all types, by name. The result is shared.
func (c *Catalogue) Facts() []*instancetype.Facts { return c.supply.Load().facts }

// viewIdle is how long a view is kept that no one looks at.
const viewIdle = time.Hour

func (c *Catalogue) view(class *awsv1.EC2NodeClass) *view {
	now := c.config.Clock.Now()
	key := class.Name + "/" + string(class.UID)
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[key]
	if v == nil {
		for k, other := range c.views {
			if now.Sub(other.used) > viewIdle {
				delete(c.views, k)
			}
		}
		v = &view{}
		c.views[key] = v
	}
	v.used = now
	return v
}
