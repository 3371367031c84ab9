// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"
	"testing"

	"karpenter/model"
	"karpenter/solve/fit"
)

// TestMenu: a type that a launch may become costs between the cheapest and the most expensive
// of its offerings of the capacity type that the launch can use.
func TestMenu(t *testing.T) {
	offer := func(capacityType, zone string, price model.Price) fit.Offer {
		return fit.Offer{Offering: &model.Offering{CapacityType: capacityType, Zone: zone, Price: price}}
	}
	c := &fit.Catalogue{Offers: []fit.Offer{
		offer(model.Spot, "a", 3), offer(model.Spot, "b", 2), offer(model.Spot, "c", 1), offer(model.Spot, "d", 5), offer(model.OnDemand, "a", 9),
		offer(model.OnDemand, "a", 7),
	}}
	rows := []*fit.TypeRow{
		{InstanceType: &model.InstanceType{Name: "large"}, Offers: fit.Range{From: 0, To: 5}},
		{InstanceType: &model.InstanceType{Name: "small"}, Offers: fit.Range{From: 5, To: 6}},
	}
	allButInC := []int32{0, 1, 3, 4, 5}
	m := &Menu{catalogue: c, rows: rows, offers: fit.SetOf(len(c.Offers), allButInC)}
	for _, q := range []struct {
		capacityType, zone string
		want               []Choice
	}{
		{model.Spot, "", []Choice{{"large", model.Spot, "b", 2, 5}}},
		{model.Spot, "a", []Choice{{"large", model.Spot, "a", 3, 3}}},
		{model.Spot, "c", nil},
		{model.OnDemand, "", []Choice{{"large", model.OnDemand, "a", 9, 9}, {"small", model.OnDemand, "a", 7, 7}}},
	} {
		if got := slices.Collect(m.Choices(q.capacityType, q.zone)); !slices.Equal(got, q.want) {
			t.Errorf("%s in %q: %v, want %v", q.capacityType, q.zone, got, q.want)
		}
	}
}
