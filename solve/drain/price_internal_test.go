// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"iter"
	"slices"
	"testing"

	"karpenter/model"
	"karpenter/solve/pack"
)

// quotes is a menu.
type quotes []pack.Choice

// Choices is as the interface says.
func (q quotes) Choices(capacityType, zone string) iter.Seq[pack.Choice] {
	return slices.Values(slices.DeleteFunc(slices.Clone(q), func(c pack.Choice) bool {
		return c.CapacityType != capacityType || zone != "" && c.Zone != zone
	}))
}

// TestChoices: at worst, a launch costs as much as the cheapest type of the first
// capacity type that it can have does at worst; without one there is no choice. spec 55/11.
func TestChoices(t *testing.T) {
	prices := quotes{
		{CapacityType: capacityOnDemand, Price: 8, Worst: 9}, {CapacityType: capacitySpot, Zone: "b", Price: 2, Worst: 6},
		{CapacityType: capacitySpot, Zone: "a", Price: 3, Worst: 5}, {CapacityType: capacityReserved, Price: 1, Worst: 2},
	}
	for _, c := range []struct {
		capacityTypes []string
		zone          string
		want          string
		worst         model.Price
	}{
		{[]string{capacityOnDemand, capacitySpot, capacityReserved}, "", capacityReserved, 2},
		{[]string{capacityOnDemand, capacitySpot}, "", capacitySpot, 5},
		{[]string{capacityOnDemand, capacitySpot}, "b", capacitySpot, 6},
		{[]string{capacityOnDemand}, "", capacityOnDemand, 9},
		{nil, "", "", 0},
	} {
		l := lot{prices, []model.Launch{{CapacityTypes: c.capacityTypes}}, c.zone}
		if got, worst := l.cheapest(); got != c.want || worst != c.worst {
			t.Errorf("%v in %q: %s for %d, want %s for %d", c.capacityTypes, c.zone, got, worst, c.want, c.worst)
		}
	}
	l := lot{menu: prices}
	if got := l.within(capacitySpot, 6); len(got) != 2 || got[0].Price != 2 {
		t.Errorf("the cheapest is not first: %+v", got)
	}
	if got := l.within(capacitySpot, 5); len(got) != 1 || got[0].Worst != 5 {
		t.Errorf("what costs too much at worst is left out: %+v", got)
	}
}
