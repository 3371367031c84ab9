// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"testing"

	"karpenter/model"
)

// TestExceeds: what no type has enough of is known without a look at the types, with what
// daemons take.
func TestExceeds(t *testing.T) {
	kind := func(name string, cpu, memory int64) *model.InstanceType {
		return &model.InstanceType{
			Name: name, Capacity: model.Resources{cpu, memory}, Allocatable: model.Resources{cpu, memory},
			Offerings: []model.Offering{{Zone: "a", CapacityType: model.OnDemand, Price: 1, Available: true}},
		}
	}
	c := NewCatalogue(&model.Snapshot{
		Pools:   []model.Pool{{Name: "p", Types: []*model.InstanceType{kind("wide", 8, 2), kind("tall", 2, 8)}}},
		Daemons: []model.Daemon{{Shape: &model.Shape{Requests: model.Resources{1, 0}}}},
	})
	for _, q := range []struct {
		requests      model.Resources
		exceeds, fits bool
	}{
		{model.Resources{7, 2}, false, true},
		{model.Resources{8, 0}, true, false},
		{model.Resources{3, 3}, false, false}, // no type has both
		{model.Resources{1, 1, 1}, true, false},
		{model.Resources{1, 1, 0}, false, true},
	} {
		d := c.NewDemand(model.Pending{Shape: &model.Shape{Requests: q.requests}})
		if got := c.exceeds(q.requests); got != q.exceeds {
			t.Errorf("%v: exceeds %v, want %v", q.requests, got, q.exceeds)
		}
		if got := c.Fits(d, Range{To: len(c.Offers)}); got != q.fits {
			t.Errorf("%v: fits %v, want %v", q.requests, got, q.fits)
		}
		if got := !c.roomy(d.Shape, d.Offers.Bits()).Empty(); got != q.fits {
			t.Errorf("%v: roomy %v, want %v", q.requests, got, q.fits)
		}
	}
}
