// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// reservation is a capacity reservation and how much of it is in use.
type reservation struct {
	types.CapacityReservation
	total, used int32
}

func (r *reservation) left() int32 { return max(0, r.total-r.used) }

func (r *reservation) seen() types.CapacityReservation {
	out := copied(r.CapacityReservation)
	out.TotalInstanceCount, out.AvailableInstanceCount = aws.Int32(r.total), aws.Int32(r.left())
	return out
}

// Reservation describes a capacity reservation to be added.
type Reservation struct {
	Type, Zone    string
	Count         int32
	Open          bool      // also used by launches that don't ask for it; else targeted
	CapacityBlock bool      // ends machines 30 minutes before its end
	Interruptible bool      // lent by another owner, who may take it back
	Owner         string    // account; default the user's own
	End           time.Time // zero is never
	Tags          []types.Tag
}

// AddReservation adds a capacity reservation and returns its ID. When it ends,
// machines of a capacity block are ended too (from half an hour before), and
// those of others go on without it.
func (a *AWS) AddReservation(r Reservation) (id string) {
	a.locked(func(now time.Time) {
		id = a.id("cr")
		added := &reservation{total: r.Count}
		added.CapacityReservation = types.CapacityReservation{
			CapacityReservationId: &id, CapacityReservationArn: aws.String(a.arn("ec2", a.config.Region, "capacity-reservation/"+id)), InstanceType: &r.Type, AvailabilityZone: &r.Zone,
			OwnerId: aws.String(cmp.Or(r.Owner, a.config.Account)), CreateDate: &now, StartDate: &now, State: types.CapacityReservationStateActive,
			InstanceMatchCriteria: types.InstanceMatchCriteriaTargeted, ReservationType: types.CapacityReservationTypeDefault, Interruptible: &r.Interruptible,
			InstancePlatform: types.CapacityReservationInstancePlatformLinuxUnix, Tenancy: types.CapacityReservationTenancyDefault, EndDateType: types.EndDateTypeUnlimited, Tags: cloneTags(r.Tags),
		}
		if r.Open {
			added.InstanceMatchCriteria = types.InstanceMatchCriteriaOpen
		}
		if r.CapacityBlock {
			added.ReservationType = types.CapacityReservationTypeCapacityBlock
		}
		for _, z := range a.zones {
			if z.name == r.Zone {
				added.AvailabilityZoneId = aws.String(z.id)
			}
		}
		a.reserved = append(a.reserved, added)
		if !r.End.IsZero() {
			added.EndDate, added.EndDateType = &r.End, types.EndDateTypeLimited
			a.later(r.End, func(at time.Time) { a.expire(added, types.CapacityReservationStateExpired, at) })
			if r.CapacityBlock {
				a.later(r.End.Add(-30*time.Minute), func(at time.Time) { a.endAll(added, at) })
			}
		}
	})
	return id
}

// ResizeReservation changes the number of instances in a reservation.
func (a *AWS) ResizeReservation(id string, count int32) error {
	return a.reservationDo(id, func(r *reservation, _ time.Time) { r.total = count })
}

// CancelReservation ends a reservation; its machines go on without it.
func (a *AWS) CancelReservation(id string) error {
	return a.reservationDo(id, func(r *reservation, now time.Time) { a.expire(r, types.CapacityReservationStateCancelled, now) })
}

func (a *AWS) reservationDo(id string, do func(*reservation, time.Time)) error {
	err := fmt.Errorf("awsfake: there is no capacity reservation %q", id)
	a.locked(func(now time.Time) {
		if r := a.reservation(id); r != nil {
			do(r, now)
			err = nil
		}
	})
	return err
}

func (a *AWS) reservation(id string) *reservation {
	for _, r := range a.reserved {
		if *r.CapacityReservationId == id {
			return r
		}
	}
	return nil
}

// expire ends a reservation. Machines that run in it become on-demand ones.
func (a *AWS) expire(r *reservation, state types.CapacityReservationState, at time.Time) {
	if r.State != types.CapacityReservationStateActive {
		return
	}
	r.State, r.EndDate = state, &at
	if r.ReservationType == types.CapacityReservationTypeCapacityBlock {
		a.endAll(r, at)
		return
	}
	for _, i := range a.instances.list {
		if i.reservation == r {
			i.reservation, i.CapacityReservationId = nil, nil
		}
	}
	r.total, r.used = 0, 0
}

func (a *AWS) endAll(r *reservation, at time.Time) {
	for _, i := range slices.Clone(a.instances.list) {
		if i.reservation == r {
			a.end(i, at)
		}
	}
}

// reserve finds the reservation that an instance is to run in: the one it names,
// or an open one that fits unless it wants none. Nil is none.
func (a *AWS) reserve(w *want) (*reservation, error) {
	if id := w.target(); id != "" {
		if r := a.reservation(id); r != nil && a.fits(r, w) {
			return r, nil
		}
	}
	full := refuse("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
	if w.target() != "" || w.market != OnDemand && w.market != Spot {
		return nil, full // blocks and lent capacity must be named
	}
	if w.market == Spot || w.preference() == types.CapacityReservationPreferenceNone {
		return nil, nil
	}
	for _, r := range a.reserved {
		if r.InstanceMatchCriteria == types.InstanceMatchCriteriaOpen && a.fits(r, w) {
			return r, nil
		}
	}
	if w.preference() == types.CapacityReservationPreferenceCapacityReservationsOnly {
		return nil, full
	}
	return nil, nil
}

// fits reports whether the instance can run in the reservation, which must be
// of the kind of its market.
func (a *AWS) fits(r *reservation, w *want) bool {
	market := OnDemand
	switch {
	case r.ReservationType == types.CapacityReservationTypeCapacityBlock:
		market = string(types.MarketTypeCapacityBlock)
	case aws.ToBool(r.Interruptible):
		market = string(types.MarketTypeInterruptibleCapacityReservation)
	}
	return r.State == types.CapacityReservationStateActive && *r.InstanceType == w.typ && *r.AvailabilityZone == w.zone() && r.left() > 0 && market == w.market
}

var reservationFilters = resources[*reservation]{
	tags: func(r *reservation) []types.Tag { return r.Tags },
	fields: fields[*reservation]{
		"instance-type":           pointer(func(r *reservation) *string { return r.InstanceType }),
		"owner-id":                pointer(func(r *reservation) *string { return r.OwnerId }),
		"availability-zone":       pointer(func(r *reservation) *string { return r.AvailabilityZone }),
		"availability-zone-id":    pointer(func(r *reservation) *string { return r.AvailabilityZoneId }),
		"state":                   one(func(r *reservation) types.CapacityReservationState { return r.State }),
		"instance-match-criteria": one(func(r *reservation) types.InstanceMatchCriteria { return r.InstanceMatchCriteria }),
		"reservation-type":        one(func(r *reservation) types.CapacityReservationType { return r.ReservationType }),
	},
}

// DescribeCapacityReservations describes reservations and what is left of them.
func (e ec2API) DescribeCapacityReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	return answer(ctx, e.a, "DescribeCapacityReservations", in, func(time.Time) (*ec2.DescribeCapacityReservationsOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, missing := byID(e.a.reserved, in.CapacityReservationIds, func(r *reservation) string { return *r.CapacityReservationId })
		if len(missing) > 0 {
			return nil, doNotExist("InvalidCapacityReservationId.NotFound", "capacity reservation ID", missing)
		}
		found, err := reservationFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		part, next, err := page(found, pages{1, 1000, 0}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeCapacityReservationsOutput{NextToken: next}
		for _, r := range part {
			out.CapacityReservations = append(out.CapacityReservations, r.seen())
		}
		return out, nil
	})
}
