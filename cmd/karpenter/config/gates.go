// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Gates are the feature gates: switches for features that are off by default,
// or can be switched off.
type Gates struct {
	NodeRepair              bool // replace nodes whose conditions report that they are unhealthy. Default false
	ReservedCapacity        bool // use reserved offerings. Default true
	SpotToSpotConsolidation bool // replace spot nodes by cheaper spot nodes. Default false
	NodeOverlay             bool // let NodeOverlays change prices and capacities. Default false
	StaticCapacity          bool // keep NodePools at their number of replicas. Default false
	CapacityBuffer          bool // keep capacity for CapacityBuffers. Default false

	TerminateFirstDrift       bool // terminate drifted nodes first where no replacement can be launched. Default false
	TerminateFirstRepair      bool // the same for unhealthy nodes. Default false
	PodDeletionCostManagement bool // steer ReplicaSets to scale down on nodes to be consolidated. Default false
}

// gate is a feature that can be switched.
type gate struct {
	name    string
	chart   string // the value of the chart it is set by
	preset  bool
	meaning string // without a full stop
	field   func(*Config) *bool
}

// features returns the gates of --feature-gates.
func features() []gate {
	return []gate{
		{"NodeRepair", "settings.featureGates.nodeRepair", false,
			"replaces nodes that have been unhealthy for longer than the provider tolerates, within the budgets of their NodePool and unless more than a fifth of its nodes are unhealthy",
			func(c *Config) *bool { return &c.Gates.NodeRepair }},
		{"ReservedCapacity", "settings.featureGates.reservedCapacity", true,
			"uses the capacity reservations that node classes select, and counts their instances; without it, Karpenter ignores them",
			func(c *Config) *bool { return &c.Gates.ReservedCapacity }},
		{"SpotToSpotConsolidation", "settings.featureGates.spotToSpotConsolidation", false,
			"replaces spot nodes by cheaper spot nodes; without it, spot nodes are only replaced when their pods fit elsewhere or on-demand costs less",
			func(c *Config) *bool { return &c.Gates.SpotToSpotConsolidation }},
		{"NodeOverlay", "settings.featureGates.nodeOverlay", false,
			"lets [NodeOverlays](fields/nodeoverlay.md) change prices and add resources; without it, they have no effect and no status",
			func(c *Config) *bool { return &c.Gates.NodeOverlay }},
		{"StaticCapacity", "settings.featureGates.staticCapacity", false,
			"keeps [NodePools](fields/nodepool.md#spec) with `spec.replicas` at that many nodes; without it, such NodePools get no nodes",
			func(c *Config) *bool { return &c.Gates.StaticCapacity }},
		{"CapacityBuffer", "settings.featureGates.capacityBuffer", false,
			"keeps capacity for [CapacityBuffers](fields/capacitybuffer.md); without it, they have no effect and no status",
			func(c *Config) *bool { return &c.Gates.CapacityBuffer }},
		{"TerminateFirstDrift", "settings.featureGates.terminateFirstDrift", false,
			"terminates a drifted node before its replacement is launched, if limits or a full capacity reservation leave no capacity for both",
			func(c *Config) *bool { return &c.Gates.TerminateFirstDrift }},
		{"TerminateFirstRepair", "settings.featureGates.terminateFirstRepair", false,
			"does the same for unhealthy nodes; requires `NodeRepair`",
			func(c *Config) *bool { return &c.Gates.TerminateFirstRepair }},
		{"PodDeletionCostManagement", "settings.featureGates.podDeletionCostManagement", false,
			"writes `controller.kubernetes.io/pod-deletion-cost` on pods of ReplicaSets, so that scaling down empties the nodes that consolidation would remove",
			func(c *Config) *bool { return &c.Gates.PodDeletionCostManagement }},
	}
}

// amazonFeatures returns the gates of --aws-feature-gates.
func amazonFeatures() []gate {
	return []gate{
		{"NodeClassCEL", "settings.awsFeatureGates.nodeClassCEL", false,
			"allows [expressions](fields/ec2nodeclass.md#speckubelet) in `maxPods`, `kubeReserved` and `systemReserved` of EC2NodeClasses; without it, such a class is not ready (`KubeletExpressionsDisabled`)",
			func(c *Config) *bool { return &c.AWS.NodeClassCEL }},
		{"DRANVIDIAGPU", "settings.awsFeatureGates.draNVIDIAGPU", true,
			"plans with the devices that NVIDIA's driver for dynamic resource allocation publishes on nodes of 53 instance types, before there is such a node",
			func(c *Config) *bool { return &c.AWS.DRANVIDIAGPU }},
		{"DRAEFA", "settings.awsFeatureGates.draEFA", true,
			"plans with the EFA interfaces that the driver dra.net publishes, before there is such a node, and attaches them to instances whose pods claim some",
			func(c *Config) *bool { return &c.AWS.DRAEFA }},
		{"RebootForRepair", "settings.awsFeatureGates.rebootForRepair", false,
			"reboots instances for GPU faults that a reboot cures, instead of replacing them; requires `NodeRepair` and the permission `ec2:RebootInstances`",
			func(c *Config) *bool { return &c.AWS.RebootForRepair }},
	}
}

// gates sets the named gates, sets the others to their defaults, and records
// unknown names.
func (s setting) gates(known []gate) setting {
	s.values, s.preset, s.check = "`Name=true` or `Name=false`, separated by commas", presets(known), valid
	s.set = func(c *Config, value string) error {
		for _, g := range known {
			*g.field(c) = g.preset
		}
		for entry := range strings.SplitSeq(value, ",") {
			name, state, _ := strings.Cut(entry, "=")
			name = strings.TrimSpace(name)
			if strings.TrimSpace(entry) == "" {
				continue
			}
			on, err := strconv.ParseBool(strings.TrimSpace(state))
			if err != nil {
				return fmt.Errorf("gate %q: want true or false", name)
			}
			if g := named(known, name); g != nil {
				*g.field(c) = on
			} else {
				c.UnknownGates = append(c.UnknownGates, name)
				c.ignore("feature gate " + name + " is unknown" + meant(name, namesOf(known)))
			}
		}
		return nil
	}
	return s
}

// named returns the gate of a name, nil when there is none.
func named(known []gate, name string) *gate {
	for i := range known {
		if known[i].name == name {
			return &known[i]
		}
	}
	return nil
}

func namesOf(known []gate) []string {
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].name
	}
	return names
}

// presets prints the defaults in the format of the setting.
func presets(known []gate) string {
	all := make([]string, len(known))
	for i, g := range known {
		all[i] = fmt.Sprintf("%s=%t", g.name, g.preset)
	}
	return strings.Join(all, ",")
}
