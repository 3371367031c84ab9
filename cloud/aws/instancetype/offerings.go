// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"slices"
	"strconv"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// reservedDiscount is the factor by which a reserved offering is cheaper than
// on demand. A reservation is paid for already, so it comes first, and
// reservations of cheaper types come before those of more expensive ones.
const reservedDiscount = 10_000_000

// Kind is what offerings of different types have in common.
type Kind struct{ Zone, CapacityType, Partition string }

// Market has the prices, and what can be launched now.
type Market struct {
	// Labels are the requirements of offerings that were made for the class
	// before; those of new kinds are added, so that equal ones are shared. They
	// must not be used concurrently. Nil means nothing is shared.
	Labels map[Kind]model.Requirements

	Zones    []Zone                            // all of the region
	OnDemand map[string]model.Price            // by type
	Spot     map[string]map[string]model.Price // by type and zone; nil = not known yet: as on demand
	Overlay  map[string]model.Price            // by type, for what has no price of its own
	SoldOut  SoldOut                           // nil = nothing is
	// Short reports whether EC2 lacks capacity for the type in a reservation; nil =
	// it never does.
	Short   func(instanceType, zone, reservation string) bool
	Shifted map[string]bool  // zones that traffic is shifted away from
	Left    map[string]int64 // launches left, by reservation
}

// SoldOut reports whether unreserved capacity is not available. Partition is ""
// for all of a placement group, or outside of any.
type SoldOut func(capacityType, instanceType, zone, partition string) bool

// Offerings returns the offerings of the type: in each zone of the region on
// demand and as spot, if EC2 offers that, and in each of the class's
// reservations for it. Offerings without capacity now are included as not
// available. In a partition placement group each is offered per partition.
//
// A spot offering without a price is left out.
func Offerings(facts *Facts, class *Class, market *Market) []cloud.Offering {
	l := &listing{facts: facts, class: class, market: market, supported: Supported(facts, class)}
	out := make([]cloud.Offering, 0, 2*len(market.Zones))
	for _, zone := range market.Zones {
		for _, capacityType := range usageClasses(&facts.Description) {
			if o, ok := l.open(zone.Name, capacityType); ok {
				out = append(out, o)
			}
		}
	}
	for _, r := range reserved(facts, class) {
		out = append(out, l.reserved(r))
	}
	return l.perPartition(out)
}

// listing is one type on the market.
type listing struct {
	facts     *Facts
	class     *Class
	market    *Market
	supported bool
}

// open is what anyone may buy.
func (l *listing) open(zone, capacityType string) (offering cloud.Offering, ok bool) {
	price, priced := l.price(zone, capacityType)
	if !priced && capacityType == karpenterv1.CapacityTypeSpot {
		return cloud.Offering{}, false
	}
	return cloud.Offering{
		Requirements: l.unreserved(zone, capacityType),
		Price:        price,
		Available:    priced && l.reachable(zone) && !l.soldOut(capacityType, zone, ""),
	}, true
}

func (l *listing) unreserved(zone, capacityType string) model.Requirements {
	return l.market.shared(Kind{Zone: zone, CapacityType: capacityType}, func() model.Requirements {
		return l.requirements(zone, capacityType,
			model.NewRequirement(awsv1.CapacityReservationIDLabelKey, model.DoesNotExist),
			model.NewRequirement(awsv1.CapacityReservationTypeLabelKey, model.DoesNotExist),
			model.NewRequirement(awsv1.CapacityReservationInterruptibleLabelKey, model.DoesNotExist))
	})
}

// shared returns the requirements of the kind, and makes them if there are none
// yet.
func (m *Market) shared(kind Kind, of func() model.Requirements) model.Requirements {
	rs, ok := m.Labels[kind]
	if !ok {
		rs = of()
		if m.Labels != nil {
			m.Labels[kind] = rs
		}
	}
	return rs
}

func (l *listing) soldOut(capacityType, zone, partition string) bool {
	return l.market.SoldOut != nil && l.market.SoldOut(capacityType, l.facts.InstanceType, zone, partition)
}

// price returns the price of the type, and false if it is unknown.
func (l *listing) price(zone, capacityType string) (model.Price, bool) {
	name := l.facts.InstanceType
	price, ok := l.market.OnDemand[name]
	if capacityType == karpenterv1.CapacityTypeSpot && l.market.Spot != nil {
		price, ok = l.market.Spot[name][zone]
	}
	if !ok {
		price, ok = l.market.Overlay[name]
	}
	return price, ok
}

func (l *listing) reserved(r awsv1.CapacityReservation) cloud.Offering {
	left := l.market.Left[r.ID]
	price := l.market.OnDemand[l.facts.InstanceType]
	offered := r.State != awsv1.CapacityReservationStateExpiring && l.reachable(r.AvailabilityZone) &&
		(l.market.Short == nil || !l.market.Short(l.facts.InstanceType, r.AvailabilityZone, r.ID))
	return cloud.Offering{
		Requirements: l.requirements(r.AvailabilityZone, karpenterv1.CapacityTypeReserved,
			model.NewRequirement(awsv1.CapacityReservationIDLabelKey, model.In, r.ID),
			model.NewRequirement(awsv1.CapacityReservationTypeLabelKey, model.In, string(kind(r))),
			model.NewRequirement(awsv1.CapacityReservationInterruptibleLabelKey, model.In, strconv.FormatBool(r.Interruptible))),
		Price:               (price + reservedDiscount - 1) / reservedDiscount, // rounded up: no price is lost
		Available:           offered && left > 0,
		Full:                offered && left <= 0,
		ReservationID:       r.ID,
		ReservationCapacity: left,
	}
}

func (l *listing) requirements(zone, capacityType string, reservation ...model.Requirement) model.Requirements {
	all := append(reservation,
		model.NewRequirement(model.LabelCapacityType, model.In, capacityType),
		model.NewRequirement(model.LabelZone, model.In, zone))
	if i := l.subnet(zone); i >= 0 && l.class.Zones[i].ID != "" {
		all = append(all, model.NewRequirement(awsv1.ZoneIDLabelKey, model.In, l.class.Zones[i].ID))
	}
	return model.NewRequirements(all...)
}

// subnet returns the place of the zone among those of the class, or −1.
func (l *listing) subnet(zone string) int {
	return slices.IndexFunc(l.class.Zones, func(z Zone) bool { return z.Name == zone })
}

// reachable reports whether the class can start the type in the zone, capacity
// aside.
func (l *listing) reachable(zone string) bool {
	return l.supported && l.subnet(zone) >= 0 && slices.Contains(l.facts.Zones, zone) && !l.market.Shifted[zone]
}

// perPartition returns each offering for each of the class's partitions.
func (l *listing) perPartition(in []cloud.Offering) []cloud.Offering {
	names := partitions(l.class.PlacementGroup)
	if len(names) == 0 {
		return in
	}
	var out []cloud.Offering
	for _, o := range in {
		for _, name := range names {
			copied := o
			with := func() model.Requirements {
				return o.Requirements.And(model.NewRequirement(awsv1.PlacementGroupPartitionLabelKey, model.In, name))
			}
			if o.ReservationID != "" {
				copied.Requirements = with()
			} else {
				copied.Requirements = l.market.shared(Kind{o.Zone(), o.CapacityType(), name}, with)
				copied.Available = o.Available && !l.soldOut(o.CapacityType(), o.Zone(), name)
			}
			out = append(out, copied)
		}
	}
	return out
}
