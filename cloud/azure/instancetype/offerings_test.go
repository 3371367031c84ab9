// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"slices"
	"testing"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// TestZones covers spec 71/25: zonal and regional offerings.
func TestZones(t *testing.T) {
	sku := skuOf(t, "Standard_D4s_v3")
	if got := typeOf(t, sku); len(got.Offerings) != 8 {
		t.Errorf("with three zones, offerings are %q", places(got))
	}
	sku.Zones = nil
	if got := places(typeOf(t, sku)); !slices.Equal(got, []string{"0 on-demand", "0 spot"}) {
		t.Errorf("without zones, offerings are %q", got)
	}
	it := typeOf(t, skuOf(t, "Standard_D4s_v3"))
	for _, c := range []struct{ zone, capacityType, scope, priority string }{
		{"eastus-1", "on-demand", "zonal", "regular"}, {"eastus-3", "spot", "zonal", "spot"}, {"0", "spot", "regional", "spot"},
	} {
		o := offering(t, it, c.zone, c.capacityType)
		for key, want := range map[string]string{
			v1beta1.PlacementScopeLabelKey: c.scope, v1beta1.AKSPriorityLabelKey: c.priority, v1beta1.AKSScaleSetPriorityLabelKey: c.priority,
		} {
			if got, _ := o.Requirements.Value(key); got != want {
				t.Errorf("%s %s: %s is %s, want %s", c.zone, c.capacityType, key, got, want)
			}
		}
	}
	for _, number := range []string{"", "1", "3"} {
		if got := instancetype.ZoneNumber(instancetype.ZoneLabel("EastUS", number)); got != number {
			t.Errorf("zone %q becomes %q", number, got)
		}
	}
	if got := instancetype.ZoneLabel("EastUS", "2"); got != "eastus-2" {
		t.Errorf("the label of zone 2 is %s", got)
	}
}

// TestPrices covers spec 71/26: a size without a price is there, and the dearest.
func TestPrices(t *testing.T) {
	facts := factsOf(t, skuOf(t, "Standard_D4s_v3"))
	market := &instancetype.Market{
		OnDemand: map[string]model.Price{"Standard_D4s_v3": azurevm.Price(0.192)},
		Spot:     map[string]model.Price{"Standard_D4s_v3": azurevm.Price(0.0384)},
	}
	it := instancetype.New(facts, class(nil, "1.33.4"), eastus(), market)
	for i := range it.Offerings {
		want := 0.192
		if it.Offerings[i].CapacityType() == "spot" {
			want = 0.0384
		}
		if got := it.Offerings[i].Price.Dollars(); got != want {
			t.Errorf("%s costs %v", it.Offerings[i].Requirements, got)
		}
	}
	unknown := typeOf(t, azurevm.SKU{Name: "Standard_Z4s_v9", VCPUs: 4, MemoryGiB: 16, Arch: "amd64"})
	if o := offering(t, unknown, "0", "on-demand"); !o.Available || o.Price.Dollars() != 999 {
		t.Errorf("an unknown size costs %v, available %t", o.Price.Dollars(), o.Available)
	}
}

// TestAvailability covers spec 71/38 and part of 71/37: capabilities, shortages
// and quotas make offerings unavailable, and leave them among the type's labels.
func TestAvailability(t *testing.T) {
	sku := skuOf(t, "Standard_D4s_v3")
	sku.LowPriority = false
	it := typeOf(t, sku)
	for i := range it.Offerings {
		if o := &it.Offerings[i]; o.Available != (o.CapacityType() == "on-demand") {
			t.Errorf("not capable of spot: %s available %t", o.Requirements, o.Available)
		}
	}

	facts := factsOf(t, skuOf(t, "Standard_D4s_v3"))
	market := func(m instancetype.Market) *cloud.InstanceType {
		return instancetype.New(facts, class(nil, "1.33.4"), eastus(), &m)
	}
	it = market(instancetype.Market{Quota: func(family string, vCPUs int64) bool { return family != "standardDSv3Family" || vCPUs != 4 }})
	for i := range it.Offerings {
		if o := &it.Offerings[i]; o.Available != (o.CapacityType() == "spot") {
			t.Errorf("without quota: %s available %t", o.Requirements, o.Available)
		}
	}
	it = market(instancetype.Market{Short: func(_ *azurevm.SKU, zone, capacityType string) bool {
		return zone == "eastus-1" || capacityType == "spot"
	}})
	for i := range it.Offerings {
		if o := &it.Offerings[i]; o.Available != (o.Zone() != "eastus-1" && o.CapacityType() == "on-demand") {
			t.Errorf("short of spot and of zone 1: %s available %t", o.Requirements, o.Available)
		}
	}
	if got := label(it, model.LabelZone); !slices.Equal(got, []string{"0", "eastus-1", "eastus-2", "eastus-3"}) {
		t.Errorf("zones are %v", got)
	}
	if got := label(it, model.LabelCapacityType); !slices.Equal(got, []string{"on-demand", "spot"}) {
		t.Errorf("capacity types are %v", got)
	}
	regional := label(typeOf(t, azurevm.SKU{Name: "Standard_D4s_v3", VCPUs: 4, MemoryGiB: 16, Arch: "amd64"}), v1beta1.PlacementScopeLabelKey)
	if !slices.Equal(regional, []string{"regional"}) {
		t.Errorf("scopes without zones are %v", regional)
	}
}

// TestUltraSSD covers the offerings of spec 71/39.
func TestUltraSSD(t *testing.T) {
	sku := skuOf(t, "Standard_D4s_v3")
	sku.UltraSSDZones, sku.UltraSSD = []string{"2"}, false
	facts := factsOf(t, sku)
	values := func(cluster *instancetype.Cluster, zone string) []string {
		it := instancetype.New(facts, class(nil, "1.33.4"), cluster, &instancetype.Market{})
		r, _ := offering(t, it, zone, "spot").Requirements.Get(v1beta1.SKUUltraSSDLabelKey)
		return r.Values
	}
	without := eastus()
	without.UltraSSD = false
	for zone, want := range map[string][]string{"eastus-1": {"false"}, "eastus-2": {"false", "true"}, "0": {"false"}} {
		if got := values(eastus(), zone); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", zone, got, want)
		}
		if got := values(without, zone); !slices.Equal(got, []string{"false"}) {
			t.Errorf("%s, where instances cannot have ultra disks: %v", zone, got)
		}
	}
	sku.UltraSSD = true
	facts = factsOf(t, sku)
	if got := values(eastus(), "0"); !slices.Equal(got, []string{"false", "true"}) {
		t.Errorf("regional: %v", got)
	}
}

// A managed OS disk is part of the price, an ephemeral one costs nothing, and a size
// without a price stays the dearest.
func TestOSDiskPrice(t *testing.T) {
	market := &instancetype.Market{
		OnDemand: map[string]model.Price{"Standard_D2as_v6": model.Dollar, "Standard_D64s_v3": model.Dollar}, OSDisk: azurevm.OSDiskPrice,
	}
	for _, c := range []struct {
		size string
		gb   int32
		want model.Price
	}{
		{"Standard_D2as_v6", 128, model.Dollar + azurevm.Price(19.71/730)}, // no ephemeral disk
		{"Standard_D2as_v6", 129, model.Dollar + azurevm.Price(38.01/730)},
		{"Standard_D64s_v3", 1717, model.Dollar}, // the cache holds it
		{"Standard_D64s_v3", 1718, model.Dollar + azurevm.Price(259.05/730)},
		{"Standard_D4s_v3", 128, instancetype.Unpriced},
	} {
		of := class(func(class *v1beta1.AKSNodeClass) { class.Spec.OSDiskSizeGB = &c.gb }, "1.33.4")
		it := instancetype.New(factsOf(t, skuOf(t, c.size)), of, eastus(), market)
		if got := offering(t, it, it.Offerings[0].Zone(), "on-demand").Price; got != c.want {
			t.Errorf("%s with %d GB costs %v, want %v", c.size, c.gb, got, c.want)
		}
	}
}
