// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/reservation"
)

// When to look again, after something was found and after nothing was.
const (
	found    = 5 * time.Minute
	notFound = time.Minute
)

// CapacityReservationsRefusedReason reports that the account does not permit
// reading capacity reservations, although the class selects some.
const CapacityReservationsRefusedReason = "CapacityReservationsRefused"

func (p *pass) images(ctx context.Context) (time.Duration, error) {
	images, err := p.AWS.Images.List(ctx, p.class)
	if unsupported, ok := errors.AsType[*image.UnsupportedAliasError](err); ok {
		p.set.SetFalse(awsv1.AMIsReadyCondition, awsv1.UnsupportedAliasReason, unsupported.Error())
		return found, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find images: %w", err)
	}
	p.class.Status.AMIs = images
	if len(images) == 0 {
		p.set.SetFalse(awsv1.AMIsReadyCondition, awsv1.AMINotFoundReason, "AMISelector did not match any AMIs")
		return notFound, nil
	}
	p.set.SetTrue(awsv1.AMIsReadyCondition)
	return found, nil
}

func (p *pass) reservations(ctx context.Context) (time.Duration, error) {
	if !p.ReservedCapacity {
		p.class.Status.CapacityReservations = nil
		return 0, p.set.Clear(awsv1.CapacityReservationsReadyCondition)
	}
	listed, skipped, err := p.AWS.Reservations.Of(ctx, p.class.Spec.CapacityReservationSelectorTerms)
	if client.Refused(err) {
		p.set.SetFalse(awsv1.CapacityReservationsReadyCondition, CapacityReservationsRefusedReason, fmt.Sprintf(
			"spec.capacityReservationSelectorTerms: AWS denies ec2:DescribeCapacityReservations (%s): allow it, or remove the terms", client.Code(err)))
		return found, nil
	}
	if err != nil {
		return 0, err
	}
	if skipped != nil {
		log.FromContext(ctx).Error(skipped, "capacity reservations are left out", "EC2NodeClass", p.class.Name)
	}
	p.class.Status.CapacityReservations = listed
	p.set.SetTrue(awsv1.CapacityReservationsReadyCondition)
	return reservation.Changes(listed, p.now), nil
}

func (p *pass) placementGroup(ctx context.Context) (time.Duration, error) {
	const failed = "Failed to resolve placement group"
	selector := p.class.Spec.PlacementGroupSelector
	if selector == nil {
		p.set.SetTrue(awsv1.PlacementGroupReadyCondition)
		return 0, nil
	}
	group, err := p.AWS.PlacementGroups.For(ctx, p.class)
	switch {
	case errors.Is(err, reservation.ErrNoGroup):
		p.set.SetFalse(awsv1.PlacementGroupReadyCondition, awsv1.PlacementGroupNotFoundReason,
			fmt.Sprintf("Placement group %q not found", cmp.Or(selector.ID, selector.Name)))
		return notFound, nil
	case client.Refused(err):
		p.set.SetFalse(awsv1.PlacementGroupReadyCondition, awsv1.PlacementGroupResolutionFailedReason, fmt.Sprintf(
			"%s: AWS denies ec2:DescribePlacementGroups (%s): allow it, or remove spec.placementGroupSelector", failed, client.Code(err)))
		return found, nil
	case err != nil:
		p.set.SetFalse(awsv1.PlacementGroupReadyCondition, awsv1.PlacementGroupResolutionFailedReason, failed)
		return 0, err
	}
	p.group = group
	p.set.SetTrue(awsv1.PlacementGroupReadyCondition)
	return found, nil
}

func (p *pass) subnets(ctx context.Context) (time.Duration, error) {
	subnets, err := p.AWS.Subnets.Of(ctx, p.class)
	if err != nil {
		return 0, err
	}
	p.class.Status.Subnets = subnets
	if len(subnets) == 0 {
		p.set.SetFalse(awsv1.SubnetsReadyCondition, awsv1.SubnetsNotFoundReason, "SubnetSelector did not match any Subnets")
		return notFound, nil
	}
	p.set.SetTrue(awsv1.SubnetsReadyCondition)
	return notFound, nil // free addresses decide about the order
}

func (p *pass) securityGroups(ctx context.Context) (time.Duration, error) {
	groups, err := p.AWS.SecurityGroups.Of(ctx, p.class)
	if err != nil {
		return 0, err
	}
	p.class.Status.SecurityGroups = groups
	if len(groups) == 0 {
		p.set.SetFalse(awsv1.SecurityGroupsReadyCondition, awsv1.SecurityGroupsNotFoundReason, "SecurityGroupSelector did not match any SecurityGroups")
		return notFound, nil
	}
	p.set.SetTrue(awsv1.SecurityGroupsReadyCondition)
	return found, nil
}

func (p *pass) profile(ctx context.Context) (time.Duration, error) {
	name, err := p.AWS.Profiles.Ensure(ctx, p.class)
	if err != nil {
		return 0, err
	}
	p.class.Status.InstanceProfile = name
	p.set.SetTrueWithReason(awsv1.InstanceProfileReadyCondition, awsv1.InstanceProfileReadyCondition, p.AWS.Profiles.Without())
	return 0, nil
}
