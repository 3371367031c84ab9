// SPDX-License-Identifier: Apache-2.0

package cloud

import resourcev1 "k8s.io/api/resource/v1"

// DevicePool is a pool of devices that a driver publishes on each node of a type,
// as far as it is known before there is a node. All its devices are of that node.
type DevicePool struct {
	Driver   string
	Name     string
	Devices  []resourcev1.Device // in the order in which they are published
	Counters []resourcev1.CounterSet
	Bindings []AttributeBinding
}

// AttributeBinding is an attribute whose value is not known before there is a node,
// but is the same for all of the devices.
type AttributeBinding struct {
	Attribute resourcev1.FullyQualifiedName
	Devices   []string // two or more
}
