// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/answers"
	"karpenter/cloud/aws/client"
)

const (
	// ttl is how long EC2's answers hold.
	ttl = time.Minute
	// pageSize is how many reservations one answer of EC2 holds at most.
	pageSize = 1000
	// notice is how long before its end a capacity block is expiring.
	notice = 40 * time.Minute
)

// ReservationAPI is the call to AWS that Reservations needs.
type ReservationAPI interface {
	DescribeCapacityReservations(context.Context, *ec2.DescribeCapacityReservationsInput, ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error)
}

// Reservations knows the capacity reservations of node classes. It may be used
// concurrently.
type Reservations struct {
	api    ReservationAPI
	clock  clock.PassiveClock
	counts *Counts
	found  *answers.Cache[string, []types.CapacityReservation] // by question
}

// NewReservations returns Reservations that ask EC2 again after a minute, and
// keep the counts in step with what it says.
func NewReservations(api ReservationAPI, clock clock.PassiveClock, counts *Counts) *Reservations {
	return &Reservations{
		api: api, clock: clock, counts: counts,
		found: answers.New[string, []types.CapacityReservation](clock, ttl),
	}
}

// Of returns the reservations that any of the terms selects and that have not
// ended, by ID. The list belongs to the caller. Reservations of which too much is
// unknown to launch into them are left out, and said in skipped.
func (r *Reservations) Of(ctx context.Context, terms []awsv1.CapacityReservationSelectorTerm) (out []awsv1.CapacityReservation, skipped, err error) {
	all := map[string]types.CapacityReservation{}
	for _, q := range questions(terms) {
		some, err := r.found.Get(ctx, q.key, func(ctx context.Context) ([]types.CapacityReservation, error) { return r.ask(ctx, &q.input) })
		if err != nil {
			return nil, nil, fmt.Errorf("describe capacity reservations: %w", err)
		}
		for _, one := range some {
			all[aws.ToString(one.CapacityReservationId)] = one
		}
	}
	now := r.clock.Now()
	var faults []error
	for _, id := range slices.Sorted(maps.Keys(all)) {
		one := all[id]
		if one.EndDate != nil && !one.EndDate.After(now) {
			continue
		}
		if fault := unusable(&one); fault != nil {
			faults = append(faults, fmt.Errorf("capacity reservation %s: %w", id, fault))
			continue
		}
		out = append(out, convert(&one, now))
	}
	return out, errors.Join(faults...), nil
}

// Fresh is like Of, but asks EC2 in any case.
func (r *Reservations) Fresh(ctx context.Context, terms []awsv1.CapacityReservationSelectorTerm) (out []awsv1.CapacityReservation, skipped, err error) {
	for _, q := range questions(terms) {
		r.found.Forget(q.key)
	}
	return r.Of(ctx, terms)
}

// ask makes one request to EC2, and records the counts in the response.
func (r *Reservations) ask(ctx context.Context, input *ec2.DescribeCapacityReservationsInput) ([]types.CapacityReservation, error) {
	asked := r.clock.Now()
	var out []types.CapacityReservation
	for pages := ec2.NewDescribeCapacityReservationsPaginator(r.api, input); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if client.NotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, page.CapacityReservations...)
	}
	for _, one := range out {
		r.counts.Synced(aws.ToString(one.CapacityReservationId), int64(aws.ToInt32(one.AvailableInstanceCount)), asked)
	}
	return out, nil
}

// question is one call to EC2 and a text that stands for it.
type question struct {
	key   string
	input ec2.DescribeCapacityReservationsInput
}

func questions(terms []awsv1.CapacityReservationSelectorTerm) []question {
	active := client.Filter("state", string(types.CapacityReservationStateActive))
	var out []question
	for _, term := range terms {
		q := question{}
		if term.ID != "" {
			q.key = term.ID
			q.input = ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{term.ID}, Filters: []types.Filter{active}}
		} else {
			filters := client.TagFilters(term.Tags)
			if term.OwnerID != "" {
				filters = append(filters, client.Filter("owner-id", term.OwnerID))
			}
			if term.InstanceMatchCriteria != "" {
				filters = append(filters, client.Filter("instance-match-criteria", term.InstanceMatchCriteria))
			}
			if len(filters) == 0 {
				continue // a term that says nothing selects nothing
			}
			for _, f := range filters {
				q.key += fmt.Sprintf("%q=%q ", *f.Name, f.Values)
			}
			q.input = ec2.DescribeCapacityReservationsInput{Filters: append(filters, active), MaxResults: aws.Int32(pageSize)}
		}
		if !slices.ContainsFunc(out, func(other question) bool { return other.key == q.key }) {
			out = append(out, q)
		}
	}
	return out
}

// unusable returns what is not known of the reservation, or nil.
func unusable(r *types.CapacityReservation) error {
	switch r.InstanceMatchCriteria {
	case types.InstanceMatchCriteriaOpen, types.InstanceMatchCriteriaTargeted:
	default:
		return fmt.Errorf("instance match criteria %q is neither open nor targeted", r.InstanceMatchCriteria)
	}
	switch r.ReservationType {
	case "", types.CapacityReservationTypeDefault, types.CapacityReservationTypeCapacityBlock:
		return nil
	}
	return fmt.Errorf("reservation type %q is neither default nor capacity-block", r.ReservationType)
}

func convert(r *types.CapacityReservation, now time.Time) awsv1.CapacityReservation {
	out := awsv1.CapacityReservation{
		ID:                    aws.ToString(r.CapacityReservationId),
		AvailabilityZone:      aws.ToString(r.AvailabilityZone),
		InstanceMatchCriteria: string(r.InstanceMatchCriteria),
		InstanceType:          aws.ToString(r.InstanceType),
		OwnerID:               aws.ToString(r.OwnerId),
		ReservationType:       cmp.Or(awsv1.CapacityReservationType(r.ReservationType), awsv1.CapacityReservationTypeDefault),
		Interruptible:         aws.ToBool(r.Interruptible),
		State:                 awsv1.CapacityReservationStateActive,
	}
	if r.EndDate != nil {
		end := metav1.NewTime(*r.EndDate)
		out.EndTime = &end
	}
	if out.EndTime != nil && out.ReservationType == awsv1.CapacityReservationTypeCapacityBlock && out.EndTime.Sub(now) <= notice {
		out.State = awsv1.CapacityReservationStateExpiring
	}
	return out
}

// Changes returns how long it is until one of the reservations ends or begins
// to expire, at most a minute.
func Changes(reservations []awsv1.CapacityReservation, now time.Time) time.Duration {
	next := ttl
	for _, r := range reservations {
		if r.EndTime == nil {
			continue
		}
		next = min(next, r.EndTime.Sub(now))
		if r.ReservationType == awsv1.CapacityReservationTypeCapacityBlock && r.State != awsv1.CapacityReservationStateExpiring {
			next = min(next, r.EndTime.Sub(now)-notice)
		}
	}
	return max(next, time.Second)
}
