// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	"karpenter/model"
	"karpenter/solve/pack"
)

// TestChoices: at worst, a launch costs as much as the most expensive offering of the first
// capacity type that it can have; without one there is no choice. spec 55/11.
func TestChoices(t *testing.T) {
	quote := func(capacityType string, price model.Price) pack.Quote {
		return pack.Quote{CapacityType: capacityType, Price: price}
	}
	options := []pack.Option{{Type: "t", Quotes: []pack.Quote{
		quote(model.OnDemand, 8), quote(model.Spot, 3), quote(capacityReserved, 2), quote(model.Spot, 5), quote(capacityReserved, 1), quote(model.OnDemand, 9),
	}}}
	for _, c := range []struct {
		capacityTypes []string
		worst         model.Price
	}{
		{[]string{capacityOnDemand, capacitySpot, capacityReserved}, 2},
		{[]string{capacityOnDemand, capacitySpot}, 5},
		{[]string{capacityOnDemand}, 9},
	} {
		if got := choices(&model.Launch{CapacityTypes: c.capacityTypes}, options); len(got) != 1 || got[0].worst != c.worst {
			t.Errorf("%v: %+v, want %d", c.capacityTypes, got, c.worst)
		}
	}
	if got := choices(&model.Launch{}, options); got != nil {
		t.Errorf("without a capacity type: %+v", got)
	}
}
