// SPDX-License-Identifier: Apache-2.0

// Package subnet reads the ARM IDs of subnets.
package subnet

import (
	"regexp"
	"strings"
)

// ID is the parts of the ARM ID of a subnet.
type ID struct{ Subscription, Group, Network, Name string }

// Parse reads an ARM ID. It is not ok if it is not of a subnet.
func Parse(id string) (parts ID, ok bool) {
	m := regexp.MustCompile(`(?i)^/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.Network/virtualNetworks/([^/]+)/subnets/([^/]+)$`).FindStringSubmatch(id)
	if m == nil {
		return ID{}, false
	}
	return ID{m[1], m[2], m[3], m[4]}, true
}

// SameNetwork reports whether both are in one virtual network.
func (s ID) SameNetwork(o ID) bool {
	return strings.EqualFold(s.Subscription, o.Subscription) && strings.EqualFold(s.Group, o.Group) && strings.EqualFold(s.Network, o.Network)
}

// Managed reports whether AKS made the subnet and its network.
func (s ID) Managed(nodeResourceGroup string) bool {
	return regexp.MustCompile(`(?i)^aks-vnet-[0-9]{8}$`).MatchString(s.Network) &&
		strings.EqualFold(s.Group, nodeResourceGroup) && strings.EqualFold(s.Name, "aks-subnet")
}
