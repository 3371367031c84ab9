// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"slices"
	"strings"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// Unpriced is what a size without a known price is said to cost per hour, so
// that it is launched only if nothing else fits.
const Unpriced = 999 * model.Dollar

// diskDriver is the CSI driver of Azure disks.
const diskDriver = "disk.csi.azure.com"

// Market is what decides about prices and what can be launched now.
type Market struct {
	OnDemand map[string]model.Price // by size
	Spot     map[string]model.Price // by size
	// OSDisk returns what a managed OS disk costs, which nodes have whose size has no
	// room for an ephemeral one; nil = nothing.
	OSDisk func(gib int64, premium bool) model.Price
	// Short reports whether Azure lacks capacity for a size in a zone; nil = it
	// never does.
	Short func(sku *azurevm.SKU, zone, capacityType string) bool
	// Quota reports whether the subscription may use more vCPUs of a family; nil =
	// it always may.
	Quota func(family string, vCPUs int64) bool
}

// New returns the type as nodes of the class have it.
func New(facts *Facts, class *Class, cluster *Cluster, market *Market) *cloud.InstanceType {
	offerings := offeringsOf(facts, class, cluster, market)
	out := &cloud.InstanceType{
		Name:         facts.Name,
		Requirements: requirements(facts, class, cluster, offerings),
		Offerings:    offerings,
		Capacity:     capacity(facts, class, cluster),
		Overhead:     overhead(facts),
	}
	if facts.DataDisks > 0 {
		out.VolumeAttachmentLimits = map[string]int{diskDriver: int(facts.DataDisks)}
	}
	return out
}

// offeringsOf returns the ways to launch the size: in each zone and outside of
// zones, on demand and as spot. Those that would fail now are there too, not
// available. Prices are of the instance with its OS disk, since it depends on the
// size whether that costs anything.
func offeringsOf(facts *Facts, class *Class, cluster *Cluster, market *Market) []cloud.Offering {
	var out []cloud.Offering
	disk := market.disk(facts, class)
	for _, number := range append(facts.zones(), "") {
		place := place{
			zone:  ZoneLabel(cluster.Region, number),
			scope: v1beta1.PlacementScopeZonal,
			ultra: cluster.UltraSSD && slices.Contains(facts.UltraSSDZones, number),
		}
		if number == "" {
			place.scope = v1beta1.PlacementScopeRegional
			place.ultra = cluster.UltraSSD && facts.UltraSSD
		}
		for _, capacityType := range []string{model.OnDemand, model.Spot} {
			out = append(out, cloud.Offering{
				Requirements: place.requirements(capacityType),
				Price:        market.price(facts.Name, capacityType, disk),
				Available:    market.available(facts, place.zone, capacityType),
			})
		}
	}
	return out
}

// place is a zone, or the region outside of zones.
type place struct {
	zone  string // label
	scope string
	ultra bool // ultra disks work there
}

func (p place) requirements(capacityType string) model.Requirements {
	priority := Priority(capacityType)
	ultra := []string{"false"}
	if p.ultra {
		ultra = append(ultra, "true")
	}
	return model.NewRequirements(
		model.NewRequirement(model.LabelCapacityType, model.In, capacityType),
		model.NewRequirement(model.LabelZone, model.In, p.zone),
		model.NewRequirement(v1beta1.PlacementScopeLabelKey, model.In, p.scope),
		model.NewRequirement(v1beta1.AKSScaleSetPriorityLabelKey, model.In, priority),
		model.NewRequirement(v1beta1.AKSPriorityLabelKey, model.In, priority),
		model.NewRequirement(v1beta1.SKUUltraSSDLabelKey, model.In, ultra...),
	)
}

// disk is what the OS disk of a node costs.
func (m *Market) disk(facts *Facts, class *Class) model.Price {
	if largest, _ := EphemeralDisk(facts); m.OSDisk == nil || class.OSDiskGB <= largest {
		return 0
	}
	return m.OSDisk(class.OSDiskGB, facts.PremiumIO)
}

// price is what a size costs with its OS disk.
func (m *Market) price(size, capacityType string, disk model.Price) model.Price {
	prices := m.OnDemand
	if capacityType == model.Spot {
		prices = m.Spot
	}
	if price, ok := prices[size]; ok {
		return price + disk
	}
	return Unpriced
}

func (m *Market) available(facts *Facts, zone, capacityType string) bool {
	switch {
	case m.Short != nil && m.Short(&facts.SKU, zone, capacityType):
		return false
	case capacityType == model.Spot:
		return facts.LowPriority
	}
	return m.Quota == nil || m.Quota(facts.Family, facts.VCPUs)
}

// Priority returns what AKS calls the capacity type.
func Priority(capacityType string) string {
	if capacityType == model.Spot {
		return v1beta1.PrioritySpot
	}
	return v1beta1.PriorityRegular
}

// ZoneLabel returns the zone label of a zone of the region by its number, and
// that of a regional instance for "".
func ZoneLabel(region, number string) string {
	if number == "" {
		return v1beta1.RegionalZone
	}
	return strings.ToLower(region) + "-" + number
}

// ZoneNumber returns the number of the zone with the label, or "" for regional
// instances.
func ZoneNumber(label string) string {
	if label == v1beta1.RegionalZone {
		return ""
	}
	return label[strings.LastIndex(label, "-")+1:]
}
