// SPDX-License-Identifier: Apache-2.0

package feed

import (
	resourcev1 "k8s.io/api/resource/v1"

	"karpenter/kube/devices"
)

// devices lists the handlers of the kinds of dynamic resource allocation. Fewer
// API servers serve DeviceTaintRules than the other kinds.
func (m *podFeed) devices() []handler {
	if m.Devices == nil {
		return nil
	}
	classes := handle(&resourcev1.DeviceClass{}, changed(m, m.Devices.SetClass), changed(m, m.Devices.DeleteClass))
	rules := handle(&resourcev1.DeviceTaintRule{}, changed(m, m.Devices.SetRule), changed(m, m.Devices.DeleteRule))
	return []handler{
		classes, rules,
		handle(&resourcev1.ResourceSlice{}, changed(m, m.Devices.SetSlice), changed(m, m.Devices.DeleteSlice)),
		handle(&resourcev1.ResourceClaim{}, changed(m, m.Devices.SetClaim), changed(m, m.Devices.DeleteClaim)),
	}
}

// changed records a change of devices or claims, and updates the pods and the
// nodes in the world that it concerns.
func changed[T any](m *podFeed, change func(T) devices.Change) func(T) {
	return func(o T) {
		m.mu.Lock()
		defer m.mu.Unlock()
		c := change(o)
		for _, node := range c.Nodes {
			m.world.SetDevices(node, m.Devices.Pools(node))
		}
		m.renew(c.Pods)
	}
}
