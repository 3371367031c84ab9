// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Start describes an instance that is started by hand.
type Start struct {
	Type        string
	Zone        string // default the region's first
	Spot        bool
	Reservation string      // ID of the capacity reservation to run in; "" = none is named
	Tags        []types.Tag // EC2 adds none of its own
}

// StartInstance starts an instance as a person would, in the first subnet of the
// zone, from the account's first image of the type's architecture, and returns
// its ID.
func (a *AWS) StartInstance(s Start) (id string, err error) {
	a.locked(func(now time.Time) {
		var w *want
		if w, err = a.byHand(s); err != nil {
			return
		}
		if err = a.check(w, now); err != nil {
			return
		}
		var made *instance
		if made, err = a.start(w, now); err == nil {
			made.Tags = slices.Clone(s.Tags)
			id = *made.InstanceId
		}
	})
	return id, err
}

// byHand is the instance that a person asks for.
func (a *AWS) byHand(s Start) (*want, error) {
	if s.Zone == "" {
		s.Zone = a.zones[0].name
	}
	w := &want{template: &template{LaunchTemplate: types.LaunchTemplate{LaunchTemplateId: aws.String("")}}, typ: s.Type, market: OnDemand}
	for _, other := range a.subnets {
		if w.subnet == nil && *other.AvailabilityZone == s.Zone {
			w.subnet = other
		}
	}
	info := a.market.byName[s.Type]
	if w.subnet == nil || info == nil {
		return nil, refuse("InvalidParameterValue", "There is no type %q, or no subnet in zone %q", s.Type, s.Zone)
	}
	for _, i := range a.images {
		if w.image == "" && slices.Contains(info.ProcessorInfo.SupportedArchitectures, types.ArchitectureType(i.Architecture)) {
			w.image = *i.ImageId
		}
	}
	if s.Spot {
		w.market = Spot
	}
	if s.Reservation == "" {
		return w, nil
	}
	w.template.data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
		CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
		CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: &s.Reservation},
	}
	switch r := a.reservation(s.Reservation); {
	case r == nil:
		return nil, doNotExist("InvalidCapacityReservationId.NotFound", "capacity reservation ID", []string{s.Reservation})
	case r.ReservationType == types.CapacityReservationTypeCapacityBlock:
		w.market = string(types.MarketTypeCapacityBlock)
	case aws.ToBool(r.Interruptible):
		w.market = string(types.MarketTypeInterruptibleCapacityReservation)
	}
	return w, nil
}
