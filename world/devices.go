// SPDX-License-Identifier: Apache-2.0

package world

import (
	"reflect"
	"slices"

	"karpenter/model"
)

// devices is what is known for dynamic resource allocation.
type devices struct {
	published map[string][]model.DevicePool         // by Node name; "" = the cluster's
	answers   func(*model.Snapshot) *model.Snapshot // nil = no one answers
}

// AnswerSelectors has f return each Snapshot in which a pod claims devices with its
// Selectors. It is called once, at first.
func (w *World) AnswerSelectors(f func(*model.Snapshot) *model.Snapshot) { w.answers = f }

// SetDevices takes in the pools of devices that are published for a Node alone, or
// with "" for the cluster, by driver and name. The Node need not be known yet.
func (w *World) SetDevices(node string, pools []model.DevicePool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if reflect.DeepEqual(w.published[node], pools) {
		return
	}
	w.published[node] = pools
	if len(pools) == 0 {
		delete(w.published, node)
	}
	w.touchHost(node)
}

// answered returns the Snapshot with what its selectors say of devices.
func (w *World) answered(s *model.Snapshot) *model.Snapshot {
	if w.answers == nil || w.claiming == 0 {
		return s
	}
	return w.answers(s)
}

// devicesOf returns the pools of the machine alone. Until it is initialized, drivers
// that have not published a complete pool will have published what its type says by
// then; one that is not launched may become several types, and has the devices of
// the one with the fewest.
func (w *World) devicesOf(m *machine) []model.DevicePool {
	var published, expected []model.DevicePool
	if m.node != nil {
		published = w.published[m.node.Name]
	}
	switch t := w.typeOf(m); {
	case m.initialized():
	case !m.launched():
		expected = w.outlook(m).devices
	case t != nil:
		expected = t.Devices
	}
	if len(expected) == 0 {
		return published
	}
	complete := func(driver string) bool {
		return slices.ContainsFunc(published, func(p model.DevicePool) bool { return p.Driver == driver && p.Broken == "" })
	}
	var out []model.DevicePool
	for _, p := range published {
		if complete(p.Driver) {
			out = append(out, p)
		}
	}
	for _, p := range expected {
		if !complete(p.Driver) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byDriver)
	return out
}

// fewest returns the devices of the type that the claim may become and that has the
// fewest.
func fewest(types []*model.InstanceType, claim model.Requirements) []model.DevicePool {
	var out []model.DevicePool
	least := -1
	for _, t := range types {
		if _, ok := claim.Intersects(t.Requirements); !ok {
			continue
		}
		n := 0
		for _, p := range t.Devices {
			n += len(p.Devices)
		}
		if least < 0 || n < least {
			out, least = t.Devices, n
		}
	}
	return out
}
