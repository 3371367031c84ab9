// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instancetype"
	"karpenter/model"
)

const (
	zoneA = "us-east-1a"
	zoneB = "us-east-1b"
	zoneC = "us-east-1c" // without a subnet
)

// openMarket offers everything for a dollar on demand; spot has no price yet.
func openMarket() *instancetype.Market {
	prices := map[string]model.Price{}
	for _, name := range []string{
		"a1.large", "m5.large", "m5.xlarge", "m8i.large", "m4.large", "m3.large", "m5.metal", "t3.large", "m6idn.32xlarge", "m6g.large", "c5.large",
	} {
		prices[name] = model.Dollar
	}
	return &instancetype.Market{
		Zones:    []instancetype.Zone{{Name: zoneA, ID: "use1-az1"}, {Name: zoneB, ID: "use1-az2"}, {Name: zoneC, ID: "use1-az4"}},
		OnDemand: prices,
	}
}

// show prints offerings as "zone capacityType [reservation] [partition] price",
// with a "-" in front of those that are not available.
func show(offerings []cloud.Offering) []string {
	var out []string
	for i := range offerings {
		o := &offerings[i]
		text := o.Zone() + " " + o.CapacityType()
		if o.ReservationID != "" {
			kind, _ := o.Requirements.Value(awsv1.CapacityReservationTypeLabelKey)
			text += fmt.Sprintf(" %s %s left %d", o.ReservationID, kind, o.ReservationCapacity)
		}
		if p, ok := o.Requirements.Value(awsv1.PlacementGroupPartitionLabelKey); ok {
			text += " partition " + p
		}
		if !o.Available {
			text = "-" + text
		}
		out = append(out, fmt.Sprintf("%s %d", text, o.Price))
	}
	return out
}

func TestOfferings(t *testing.T) {
	w := newWorld(t)
	const dollar = "1000000000"
	for _, c := range []struct {
		name   string
		change func(*instancetype.Class, *instancetype.Market)
		want   []string
	}{
		{"spec 65/57 spec 65/59 before spot has a price", func(*instancetype.Class, *instancetype.Market) {}, []string{
			zoneA + " on-demand " + dollar, zoneA + " spot " + dollar,
			zoneB + " on-demand " + dollar, zoneB + " spot " + dollar,
			"-" + zoneC + " on-demand " + dollar, "-" + zoneC + " spot " + dollar,
		}},
		{"spec 65/59 a zone without history", func(_ *instancetype.Class, m *instancetype.Market) {
			m.Spot = map[string]map[string]model.Price{"m5.large": {zoneA: 300}}
		}, []string{
			zoneA + " on-demand " + dollar, zoneA + " spot 300", zoneB + " on-demand " + dollar, "-" + zoneC + " on-demand " + dollar,
		}},
		{"spec 65/58 no price", func(_ *instancetype.Class, m *instancetype.Market) { m.OnDemand = nil }, []string{
			"-" + zoneA + " on-demand 0", "-" + zoneB + " on-demand 0", "-" + zoneC + " on-demand 0",
		}},
		{"spec 65/58 an overlay's price", func(_ *instancetype.Class, m *instancetype.Market) {
			m.Spot = map[string]map[string]model.Price{"m5.large": {zoneA: 300}}
			m.OnDemand, m.Overlay = nil, map[string]model.Price{"m5.large": 1230000000}
		}, []string{
			zoneA + " on-demand 1230000000", zoneA + " spot 300", zoneB + " on-demand 1230000000", zoneB + " spot 1230000000",
			"-" + zoneC + " on-demand 1230000000", "-" + zoneC + " spot 1230000000",
		}},
		{"spec 65/61 sold out", func(_ *instancetype.Class, m *instancetype.Market) {
			m.SoldOut = func(capacityType, instanceType, zone, _ string) bool {
				return capacityType == model.Spot && instanceType == "m5.large" && zone == zoneA
			}
		}, []string{
			zoneA + " on-demand " + dollar, "-" + zoneA + " spot " + dollar,
			zoneB + " on-demand " + dollar, zoneB + " spot " + dollar,
			"-" + zoneC + " on-demand " + dollar, "-" + zoneC + " spot " + dollar,
		}},
		{"spec 65/68 shifted", func(_ *instancetype.Class, m *instancetype.Market) { m.Shifted = map[string]bool{zoneB: true} }, []string{
			zoneA + " on-demand " + dollar, zoneA + " spot " + dollar,
			"-" + zoneB + " on-demand " + dollar, "-" + zoneB + " spot " + dollar,
			"-" + zoneC + " on-demand " + dollar, "-" + zoneC + " spot " + dollar,
		}},
		{"spec 65/70 reservations", func(c *instancetype.Class, m *instancetype.Market) {
			m.Zones = m.Zones[:1]
			m.Left = map[string]int64{"cr-1": 4, "cr-3": 4, "cr-4": 4, "cr-5": 4}
			c.Reservations = []awsv1.CapacityReservation{
				{ID: "cr-1", InstanceType: "m5.large", AvailabilityZone: zoneA},
				{ID: "cr-2", InstanceType: "m5.large", AvailabilityZone: zoneA, State: awsv1.CapacityReservationStateActive},
				{ID: "cr-3", InstanceType: "m5.large", AvailabilityZone: zoneC},
				{ID: "cr-4", InstanceType: "c5.large", AvailabilityZone: zoneA},
				{
					ID: "cr-5", InstanceType: "m5.large", AvailabilityZone: zoneA,
					ReservationType: awsv1.CapacityReservationTypeCapacityBlock, State: awsv1.CapacityReservationStateExpiring,
				},
			}
		}, []string{
			zoneA + " on-demand " + dollar, zoneA + " spot " + dollar,
			zoneA + " reserved cr-1 default left 4 100", "-" + zoneA + " reserved cr-2 default left 0 100",
			"-" + zoneC + " reserved cr-3 default left 4 100", "-" + zoneA + " reserved cr-5 capacity-block left 4 100",
		}},
		{"partitions", func(c *instancetype.Class, m *instancetype.Market) {
			m.Zones = m.Zones[:1]
			c.PlacementGroup = &instancetype.PlacementGroup{ID: "pg-1", Strategy: "partition", Partitions: 2}
		}, []string{
			zoneA + " on-demand partition 1 " + dollar, zoneA + " on-demand partition 2 " + dollar,
			zoneA + " spot partition 1 " + dollar, zoneA + " spot partition 2 " + dollar,
		}},
		{"spec 65/66 a partition is sold out", func(c *instancetype.Class, m *instancetype.Market) {
			m.Zones = m.Zones[:1]
			c.PlacementGroup = &instancetype.PlacementGroup{ID: "pg-1", Strategy: "partition", Partitions: 2}
			m.SoldOut = func(capacityType, _, _, partition string) bool { return capacityType == model.Spot && partition == "1" }
		}, []string{
			zoneA + " on-demand partition 1 " + dollar, zoneA + " on-demand partition 2 " + dollar,
			"-" + zoneA + " spot partition 1 " + dollar, zoneA + " spot partition 2 " + dollar,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			class, market := plain(awsv1.AMIFamilyAL2023), openMarket()
			c.change(class, market)
			if diff := cmp.Diff(c.want, show(instancetype.Offerings(w.facts(t, "m5.large"), class, market))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// spec 65/69: reservations cost something, less than anything on demand, and
// those of more expensive types more.
func TestReservedPrices(t *testing.T) {
	w := newWorld(t)
	class, market := plain(awsv1.AMIFamilyAL2023), openMarket()
	cheapest, last := model.Price(0), model.Price(0)
	for _, p := range []struct {
		name    string
		dollars float64
	}{{"t4g.nano", 0.0042}, {"m5.large", 0.096}, {"m5.xlarge", 0.192}, {"p5.48xlarge", 55.04}} {
		price := model.Price(p.dollars * float64(model.Dollar))
		if cheapest == 0 {
			cheapest = price
		}
		market.OnDemand[p.name] = price
		market.Left = map[string]int64{"cr-1": 1}
		class.Reservations = []awsv1.CapacityReservation{{ID: "cr-1", InstanceType: p.name, AvailabilityZone: zoneA}}
		for _, o := range instancetype.Offerings(w.facts(t, p.name), class, market) {
			if o.CapacityType() != model.Reserved {
				continue
			}
			if o.Price <= last || o.Price*100 >= cheapest || !o.Available {
				t.Errorf("%s: reserved for %d after %d, on demand from %d", p.name, o.Price, last, cheapest)
			}
			last = o.Price
		}
	}
}

// Zones without a subnet have no known ID in their offerings, and no type has a
// placement group that the class has not.
func TestOfferingLabels(t *testing.T) {
	w, class := newWorld(t), plain(awsv1.AMIFamilyAL2023)
	for _, o := range instancetype.Offerings(w.facts(t, "m5.large"), class, openMarket()) {
		id, ok := o.Requirements.Value(awsv1.ZoneIDLabelKey)
		if want := map[string]string{zoneA: "use1-az1", zoneB: "use1-az2"}[o.Zone()]; id != want || ok != (want != "") {
			t.Errorf("%s: zone ID %q", o.Requirements, id)
		}
	}
	if _, ok := instancetype.New(w.facts(t, "m5.large"), class, defaults()).Requirements.Get(awsv1.PlacementGroupIDLabelKey); ok {
		t.Error("a placement group without one")
	}
	class.PlacementGroup = &instancetype.PlacementGroup{ID: "pg-1", Strategy: "partition", Partitions: 3}
	it := instancetype.New(w.facts(t, "m5.large"), class, defaults())
	id, _ := it.Requirements.Value(awsv1.PlacementGroupIDLabelKey)
	partitions, _ := it.Requirements.Get(awsv1.PlacementGroupPartitionLabelKey)
	if id != "pg-1" || fmt.Sprint(partitions.Values) != "[1 2 3]" {
		t.Errorf("placement group %q, partitions %v", id, partitions.Values)
	}
}

func TestNewClass(t *testing.T) {
	enabled := "enabled"
	in := &awsv1.EC2NodeClass{
		Spec: awsv1.EC2NodeClassSpec{
			AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}},
			Kubelet: awsv1.KubeletConfiguration{
				"maxPods":      apiextensionsv1.JSON{Raw: []byte("42")},
				"kubeReserved": apiextensionsv1.JSON{Raw: []byte(`{"cpu":"2","memory":"memory_mib / 64","pid":"-5"}`)},
			},
			InstanceStorePolicy: new(awsv1.InstanceStorePolicyRAID0),
			ConnectionTracking:  &awsv1.ConnectionTracking{},
			CPUOptions:          &awsv1.CPUOptions{NestedVirtualization: &enabled},
		},
		Status: awsv1.EC2NodeClassStatus{Subnets: []awsv1.Subnet{
			{ID: "subnet-3", Zone: zoneB, ZoneID: "use1-az2"}, {ID: "subnet-1", Zone: zoneA, ZoneID: "use1-az1"}, {ID: "subnet-2", Zone: zoneA, ZoneID: "use1-az1"},
		}},
	}
	got := instancetype.NewClass(in, &instancetype.PlacementGroup{ID: "pg-1"})
	if got.Family != awsv1.AMIFamilyBottlerocket || *got.Kubelet.MaxPods != 42 || !got.RAID0 || !got.ConnectionTracking || !got.NestedVirtualization || got.PlacementGroup.ID != "pg-1" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(plain(awsv1.AMIFamilyAL2023).Zones, got.Zones); diff != "" {
		t.Error(diff)
	}
	if cpu := value(got.Kubelet.KubeReserved, "cpu"); cpu != 2 || len(got.Kubelet.KubeReserved) != 1 {
		t.Errorf("reserved %v", got.Kubelet.KubeReserved)
	}
}
