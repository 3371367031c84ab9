// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/loop"
	"karpenter/model"
)

const (
	// expiring is the time between two rounds of Expiration.
	expiring = time.Minute
	// expirationRetry is the time until the next round if the account may not
	// read reservations.
	expirationRetry = time.Hour
	// deletions is how many claims are deleted at once.
	deletions = 10
)

// reasonExpiring is why claims are deleted, in metrics.
const reasonExpiring = "capacity_reservation_expired"

// Expiration is the controller capacityreservation.expiration, for use with the
// gate ReservedCapacity. EC2 ends the instances of a capacity block half an hour
// before its end; their nodes are drained before. All fields are required.
type Expiration struct {
	Claims *Claims
	// Reservations finds capacity reservations; reservation.Reservations does.
	Reservations interface {
		Of(context.Context, []awsv1.CapacityReservationSelectorTerm) (found []awsv1.CapacityReservation, skipped, err error)
	}
	refused bool // was logged
}

// Register adds the controller to the manager.
func (e *Expiration) Register(mgr manager.Manager) error {
	return loop.After(mgr, "capacityreservation.expiration", e.Round)
}

// Round deletes claims whose capacity block is about to end; again is when to do
// so next. EC2 is asked only about the reservations of claims.
func (e *Expiration) Round(ctx context.Context) (again time.Duration, err error) {
	inside, err := e.inside(ctx)
	if err != nil || len(inside) == 0 {
		return expiring, err
	}
	var terms []awsv1.CapacityReservationSelectorTerm
	for _, id := range slices.Sorted(maps.Keys(inside)) {
		terms = append(terms, awsv1.CapacityReservationSelectorTerm{ID: id})
	}
	found, _, err := e.Reservations.Of(ctx, terms)
	if awsclient.Refused(err) {
		if !e.refused {
			log.FromContext(ctx).Error(err, "nodes in capacity blocks are not drained before their blocks end")
		}
		e.refused = true
		return expirationRetry, nil
	}
	if err != nil {
		return 0, fmt.Errorf("capacity reservations of node claims: %w", err)
	}
	e.refused = false
	var failures []error
	for _, r := range found {
		if r.State == awsv1.CapacityReservationStateExpiring {
			failures = append(failures, e.empty(ctx, inside[r.ID]))
		}
	}
	return expiring, errors.Join(failures...)
}

// inside returns the claims that run in reservations and are not deleted, by the
// reservation's ID.
func (e *Expiration) inside(ctx context.Context) (map[string][]*v1.NodeClaim, error) {
	byInstance, err := e.Claims.ByInstance(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]*v1.NodeClaim{}
	for _, claim := range byInstance {
		id := claim.Labels[awsv1.CapacityReservationIDLabelKey]
		if id != "" && claim.Labels[model.LabelCapacityType] == model.Reserved && claim.DeletionTimestamp.IsZero() {
			out[id] = append(out[id], claim)
		}
	}
	return out, nil
}

// empty deletes the claims.
func (e *Expiration) empty(ctx context.Context, claims []*v1.NodeClaim) error {
	failures := make([]error, len(claims))
	var running errgroup.Group
	running.SetLimit(deletions)
	for i, claim := range claims {
		running.Go(func() error {
			_, failures[i] = e.Claims.Delete(ctx, claim, reasonExpiring)
			return nil
		})
	}
	_ = running.Wait()
	return errors.Join(failures...)
}
