// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	"karpenter/model"
)

// view is the types of a region as nodes of one class have them.
type view struct {
	used time.Time // guarded by Catalogue.mu

	mu      sync.Mutex
	seen    *awsv1.EC2NodeClass          // the class as it was asked for last, of our own
	group   *instancetype.PlacementGroup // and its placement group
	demands demands
	labels  map[instancetype.Kind]model.Requirements // of offerings: types share them
	stamp   stamp
	entries map[string]*entry
	out     []*cloud.InstanceType
}

// demands are everything of a class that its types depend on.
type demands struct {
	class    *instancetype.Class
	subnets  map[string][]string // IDs by zone, sorted
	kubelet  awsv1.KubeletConfiguration
	amis     []awsv1.AMI
	images   *image.Choice
	formulas *instancetype.Formulas
}

// stamp has the inputs of all types besides the class. While it stays equal, so
// does every type.
type stamp struct {
	supply    *supply
	prices    *priceList
	overlays  *overlayPrices
	shortages uint64
	memory    uint64
	shifted   string // zones of the class
	left      string // in reservations of the class
}

// entry is one type.
type entry struct {
	ingredients ingredients
	image       string              // that the type boots from; "" = none
	base        *cloud.InstanceType // the type before its offerings, and before its nodes' memory was seen
	final       *cloud.InstanceType
}

// ingredients are what a type is made of, beside its class.
type ingredients struct {
	facts     *instancetype.Facts
	memory    int64  // bytes that nodes were seen to have; 0 = none was seen
	prices    uint64 // version
	overlay   model.Price
	shortages uint64
	zones     *instancetype.Zone // the first of the region's: they are replaced together
	shifted   string             // zones
	left      string             // in reservations for the type
}

// types returns the types as they are now.
func (v *view) types(c *Catalogue, class *awsv1.EC2NodeClass, group *instancetype.PlacementGroup) []*cloud.InstanceType {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := c.config.Clock.Now()
	changed := v.lookLocked(c, class, group)
	stamp := v.stampLocked(c, now)
	if !changed && stamp == v.stamp {
		return v.out
	}
	v.stamp = stamp
	v.makeLocked(c, changed, now)
	return v.out
}

// lookLocked records the class, and reports whether types depend on what has
// changed in it.
func (v *view) lookLocked(c *Catalogue, class *awsv1.EC2NodeClass, group *instancetype.PlacementGroup) bool {
	sameGroup := group == v.group || group != nil && v.group != nil && *group == *v.group
	if v.seen != nil && sameGroup && sameClass(v.seen, class) {
		return false
	}
	v.seen, v.group = class.DeepCopy(), group
	demands := c.demands(v.seen, group)
	if demands.equal(&v.demands) {
		return false
	}
	v.demands, v.labels = demands, map[instancetype.Kind]model.Requirements{}
	return true
}

// sameClass reports whether two classes have the same fields of those that types
// may depend on.
func sameClass(a, b *awsv1.EC2NodeClass) bool {
	s, t := &a.Spec, &b.Spec
	return slices.Equal(a.Status.Subnets, b.Status.Subnets) && a.AMIFamily() == b.AMIFamily() &&
		reflect.DeepEqual(a.Status.AMIs, b.Status.AMIs) &&
		reflect.DeepEqual(a.Status.CapacityReservations, b.Status.CapacityReservations) &&
		reflect.DeepEqual(s.Kubelet, t.Kubelet) && reflect.DeepEqual(s.BlockDeviceMappings, t.BlockDeviceMappings) &&
		reflect.DeepEqual(s.InstanceStorePolicy, t.InstanceStorePolicy) && reflect.DeepEqual(s.NetworkInterfaces, t.NetworkInterfaces) &&
		a.Annotations[awsv1.ConsumableCapacityAnnotationKey] == b.Annotations[awsv1.ConsumableCapacityAnnotationKey] &&
		(s.ConnectionTracking == nil) == (t.ConnectionTracking == nil) && reflect.DeepEqual(s.CPUOptions, t.CPUOptions)
}

// demands returns the parts of the class that types depend on. Invalid
// expressions are left out: the status of the class reports them, and the
// defaults of the family apply.
func (c *Catalogue) demands(class *awsv1.EC2NodeClass, group *instancetype.PlacementGroup) demands {
	out := demands{
		class: instancetype.NewClass(class, group), subnets: map[string][]string{}, kubelet: class.Spec.Kubelet,
		amis: class.Status.AMIs, images: image.NewChoice(class.Status.AMIs),
	}
	if c.config.Left == nil {
		out.class.Reservations = nil
	}
	for _, s := range class.Status.Subnets {
		out.subnets[s.Zone] = append(out.subnets[s.Zone], s.ID)
	}
	for _, ids := range out.subnets {
		slices.Sort(ids)
	}
	if c.config.Formulas != nil {
		if formulas, err := instancetype.NewFormulas(c.config.Formulas, class.Spec.Kubelet); err == nil {
			out.formulas = formulas
		}
	}
	return out
}

func (d *demands) equal(other *demands) bool {
	return reflect.DeepEqual(d.class, other.class) && reflect.DeepEqual(d.subnets, other.subnets) &&
		reflect.DeepEqual(d.kubelet, other.kubelet) && reflect.DeepEqual(d.amis, other.amis)
}

func (v *view) stampLocked(c *Catalogue, now time.Time) stamp {
	return stamp{
		supply: c.supply.Load(), prices: c.prices.Load(), overlays: c.overlays.Load(),
		shortages: c.config.Shortages.Sequence(now), memory: c.config.Memory.Sequence(now),
		shifted: strings.Join(c.shifted(v.demands.class), " "), left: left(v.demands.class, "", c.config.Left),
	}
}

// shifted returns the class's zones that traffic is shifted away from.
func (c *Catalogue) shifted(class *instancetype.Class) []string {
	if c.config.Shifts == nil {
		return nil
	}
	var out []string
	for _, zone := range class.Zones {
		if zone.ID != "" && c.config.Shifts.Shifted(zone.ID) {
			out = append(out, zone.Name)
		}
	}
	return out
}

// left prints what is left in the class's reservations for the type, or, with
// "", in all.
func left(class *instancetype.Class, instanceType string, of func(id string) int64) string {
	var out []byte
	for i := range class.Reservations {
		if r := &class.Reservations[i]; instanceType == "" || r.InstanceType == instanceType {
			out = append(append(append(out, r.ID...), '='), strconv.FormatInt(of(r.ID), 10)...)
			out = append(out, ' ')
		}
	}
	return string(out)
}

// makeLocked builds the types again whose inputs have changed.
func (v *view) makeLocked(c *Catalogue, classChanged bool, now time.Time) {
	supply := v.stamp.supply
	market := v.marketLocked(c, now)
	entries := make(map[string]*entry, len(supply.facts))
	out := make([]*cloud.InstanceType, 0, len(supply.facts))
	for _, f := range supply.facts {
		e := v.entries[f.InstanceType]
		if classChanged || e == nil || e.ingredients.facts != f {
			e = v.startLocked(c, f, e)
		}
		if of := v.ingredientsLocked(c, e, f, market, now); of != e.ingredients {
			e = &entry{of, e.image, e.base, v.finishLocked(c, e, &of, market)}
		}
		entries[f.InstanceType] = e
		out = append(out, e.final)
	}
	v.entries = entries
	if !slices.Equal(out, v.out) {
		v.out = out
	}
}

// startLocked returns an entry without ingredients that has the previous type,
// for finishLocked.
func (v *view) startLocked(c *Catalogue, f *instancetype.Facts, was *entry) *entry {
	out := &entry{base: v.resolveLocked(c, f)}
	if was != nil {
		out.final = was.final
	}
	if ami, ok := v.demands.images.For(out.base); ok {
		out.image = ami.ID
	}
	return out
}

func (v *view) ingredientsLocked(c *Catalogue, e *entry, f *instancetype.Facts, market *instancetype.Market, now time.Time) ingredients {
	out := ingredients{
		facts: f, prices: v.stamp.prices.versionOf(f.InstanceType), overlay: v.stamp.overlays.of[f.InstanceType],
		shortages: c.config.Shortages.SequenceOf(f.InstanceType, now), zones: v.stamp.supply.first(),
		shifted: v.stamp.shifted,
	}
	if e.image != "" {
		out.memory = c.config.Memory.Bytes(f.InstanceType, e.image, now)
	}
	if v.stamp.left != "" {
		out.left = left(v.demands.class, f.InstanceType, func(id string) int64 { return market.Left[id] })
	}
	return out
}

// resolveLocked returns the type without offerings.
func (v *view) resolveLocked(c *Catalogue, f *instancetype.Facts) *cloud.InstanceType {
	class, _, err := v.demands.formulas.Apply(v.demands.class, f, &c.config.Cluster)
	if err != nil {
		class = v.demands.class
	}
	return instancetype.New(f, class, &c.config.Cluster)
}

// finishLocked builds the type from its ingredients. It returns the previous
// type if that is equal.
func (v *view) finishLocked(c *Catalogue, e *entry, of *ingredients, market *instancetype.Market) *cloud.InstanceType {
	t := *e.base
	if of.memory > 0 {
		shown := *of.facts
		shown.MemoryBytes = of.memory
		t = *v.resolveLocked(c, &shown)
	}
	t.Offerings = instancetype.Offerings(of.facts, v.demands.class, market)
	if e.final != nil && reflect.DeepEqual(e.final, &t) {
		return e.final
	}
	return &t
}

// marketLocked returns what can be launched now.
func (v *view) marketLocked(c *Catalogue, now time.Time) *instancetype.Market {
	class, group := v.demands.class, ""
	if class.PlacementGroup != nil {
		group = class.PlacementGroup.ID
	}
	out := &instancetype.Market{
		Labels: v.labels,
		Zones:  v.stamp.supply.zones, OnDemand: v.stamp.prices.onDemand, Spot: v.stamp.prices.spot, Overlay: v.stamp.overlays.of,
		SoldOut: func(capacityType, instanceType, zone, partition string) bool {
			return c.config.Shortages.SoldOut(shortage.Offering{
				CapacityType: capacityType, InstanceType: instanceType, Zone: zone, Group: group, Partition: partition,
			}, v.demands.subnets[zone], now)
		},
		Short: func(instanceType, zone, reservation string) bool {
			return c.config.Shortages.ReservationShort(instanceType, zone, reservation, now)
		},
		Shifted: map[string]bool{}, Left: map[string]int64{},
	}
	for _, zone := range strings.Fields(v.stamp.shifted) {
		out.Shifted[zone] = true
	}
	for i := range class.Reservations {
		id := class.Reservations[i].ID
		out.Left[id] = c.config.Left(id)
	}
	return out
}
