// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/cloud/aws/instancetype"
	facts "karpenter/cloud/ec2"
)

// supply has the types of the region and the zones that offer them. It never
// changes.
type supply struct {
	facts []*instancetype.Facts // by name
	zones []instancetype.Zone   // all of the region, by name
}

func (s *supply) byName() map[string]*instancetype.Facts {
	out := make(map[string]*instancetype.Facts, len(s.facts))
	for _, f := range s.facts {
		out[f.InstanceType] = f
	}
	return out
}

// Refresh asks EC2 for the types and the zones that offer them. After an error,
// the known types stay.
func (c *Catalogue) Refresh(ctx context.Context) error {
	_, err, _ := c.asking.Do("types", func() (any, error) { return nil, c.refresh(ctx) })
	return err
}

func (c *Catalogue) refresh(ctx context.Context) error {
	var types map[string]facts.Description
	var sold map[string][]string
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		types, err = DescribeTypes(both, c.config.EC2)
		return err
	})
	group.Go(func() (err error) {
		sold, err = describeOfferings(both, c.config.EC2)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.supply.Load()
	lostTypes, lostPlaces := c.doubts.restore(before, types, sold)
	c.config.Metrics.doubted(lostTypes, lostPlaces)
	if lostTypes+lostPlaces > 0 {
		log.FromContext(ctx).Info("DescribeInstanceTypes returned far fewer types than before; keeping the previous list until three responses agree",
			"types", lostTypes, "offerings", lostPlaces)
	}
	after := c.assemble(before, types, sold)
	if slices.Equal(before.facts, after.facts) && slices.Equal(before.zones, after.zones) {
		return nil
	}
	c.supply.Store(after)
	log.FromContext(ctx).V(1).Info("instance types have changed", "types", len(after.facts), "zones", len(after.zones))
	return nil
}

// restore adds to an answer the types and offerings that it lacks and whose
// loss is doubted, and returns how many.
func (d *doubts) restore(known *supply, types map[string]facts.Description, sold map[string][]string) (lostTypes, lostPlaces int) {
	before := known.byName()
	keptTypes := d.types.kept(slices.Sorted(maps.Keys(before)), func(name string) bool { _, ok := types[name]; return ok })
	for _, name := range keptTypes {
		types[name] = before[name].Description
	}
	var places []place
	for _, f := range known.facts {
		if _, still := types[f.InstanceType]; !still {
			continue // its places go with it
		}
		for _, zone := range f.Zones {
			places = append(places, place{f.InstanceType, zone})
		}
	}
	keptPlaces := d.places.kept(places, func(p place) bool { return slices.Contains(sold[p.instanceType], p.zone) })
	for _, p := range keptPlaces {
		sold[p.instanceType] = append(sold[p.instanceType], p.zone)
	}
	for _, p := range keptPlaces {
		slices.Sort(sold[p.instanceType])
	}
	return len(keptTypes), len(keptPlaces)
}

// assemble makes a supply from an answer. It reuses facts and zones that have
// not changed.
func (c *Catalogue) assemble(before *supply, types map[string]facts.Description, sold map[string][]string) *supply {
	known, zones := before.byName(), map[string]bool{}
	after := &supply{}
	for name, d := range types {
		f := &instancetype.Facts{Description: d, Zones: sold[name], BranchENIs: c.branchENIs[name], Devices: c.devices[name]}
		if mbps, published := c.bandwidth[name]; published {
			f.NetworkMbps = mbps
		} else {
			f.NetworkMbps = d.NetworkInfo.BaselineMbps()
		}
		if old := known[name]; old != nil && reflect.DeepEqual(old, f) {
			f = old
		}
		after.facts = append(after.facts, f)
		for _, zone := range f.Zones {
			zones[zone] = true
		}
	}
	slices.SortFunc(after.facts, func(a, b *instancetype.Facts) int { return strings.Compare(a.InstanceType, b.InstanceType) })
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		after.zones = append(after.zones, instancetype.Zone{Name: zone})
	}
	if slices.Equal(before.zones, after.zones) {
		after.zones = before.zones
	}
	return after
}

// doubting reports whether the last answer is doubted.
func (c *Catalogue) doubting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.doubts.types.missing)+len(c.doubts.places.missing) > 0
}

// first returns the first zone of the region; nil when there is none.
func (s *supply) first() *instancetype.Zone {
	if len(s.zones) == 0 {
		return nil
	}
	return &s.zones[0]
}
