// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"testing"

	"karpenter/model"
)

// TestNoClaims: where no pod claims devices, a decision is about the Snapshot as it is,
// whatever devices nodes and types have: nothing more of this package is run.
func TestNoClaims(t *testing.T) {
	kind := &model.DeviceKind{Key: "k", Driver: "d"}
	pools := []model.DevicePool{{Driver: "d", Name: "p", Devices: []model.Device{{Name: "a", Kind: kind}}}}
	types := []*model.InstanceType{{Name: "t", Devices: pools}}
	pending := func(claims ...model.DeviceClaim) []model.Pending {
		return []model.Pending{{Shape: &model.Shape{Claims: claims}, Pods: []model.Pod{{Name: "p"}}}}
	}
	s := &model.Snapshot{
		Pools: []model.Pool{{Name: "p", Types: types}}, Nodes: []model.Node{{Name: "n", Devices: pools, Movable: pending()}}, Devices: pools, Pending: pending(),
		Daemons: []model.Daemon{{Name: "d/d", Shape: pending(model.DeviceClaim{Name: "c"})[0].Shape}},
	}
	var c Charge
	if got := c.Of(s); got != s || c.Book != nil {
		t.Errorf("the Snapshot is %p, was %p; the book is %v", got, s, c.Book)
	}
	claims := *s
	claims.Pending = pending(model.DeviceClaim{Name: "c", Requests: []model.DeviceRequest{{Name: "r", Ways: []model.DeviceWay{{Count: 1}}}}})
	if got := c.Of(&claims); got == &claims || c.Book == nil {
		t.Error("the devices that a pod claims are not counted")
	}
	if got := c.Of(s); got != s || c.Book != nil {
		t.Error("once the pod is gone, devices are still counted")
	}
}
