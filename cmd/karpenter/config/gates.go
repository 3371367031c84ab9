package config

import (
	"fmt"
	"strings"
)

const defaultGates = "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false"

// Gates switch features that are not for everybody yet.
type Gates struct {
	NodeRepair              bool // replace nodes whose conditions say they are broken. Default false
	ReservedCapacity        bool // use reserved offerings. Default true
	SpotToSpotConsolidation bool // replace spot nodes by cheaper spot nodes. Default false
	NodeOverlay             bool // let NodeOverlays change prices and capacities. Default false
	StaticCapacity          bool // keep NodePools at their number of replicas. Default false
	CapacityBuffer          bool // keep room for CapacityBuffers. Default false
}

// gate returns the gate of a name, nil when there is none.
func (g *Gates) gate(name string) *bool {
	switch name {
	case "NodeRepair":
		return &g.NodeRepair
	case "ReservedCapacity":
		return &g.ReservedCapacity
	case "SpotToSpotConsolidation":
		return &g.SpotToSpotConsolidation
	case "NodeOverlay":
		return &g.NodeOverlay
	case "StaticCapacity":
		return &g.StaticCapacity
	case "CapacityBuffer":
		return &g.CapacityBuffer
	}
	return nil
}

// gates sets the gates that are named, the others to what reset leaves, and
// notes the names that gate does not know.
func (s setting) gates(reset func(*Config), gate func(*Config, string) *bool) setting {
	s.check = valid
	s.set = func(c *Config, value string) error {
		reset(c)
		for entry := range strings.SplitSeq(value, ",") {
			name, state, _ := strings.Cut(entry, "=")
			name = strings.TrimSpace(name)
			if strings.TrimSpace(entry) == "" {
				continue
			}
			on, err := truth(strings.TrimSpace(state))
			if err != nil {
				return fmt.Errorf("gate %q: %w", name, err)
			}
			if known := gate(c, name); known != nil {
				*known = on
			} else {
				c.UnknownGates = append(c.UnknownGates, name)
			}
		}
		return nil
	}
	return s
}
