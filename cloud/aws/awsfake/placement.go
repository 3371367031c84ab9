// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// placementGroup is a placement group.
type placementGroup struct{ types.PlacementGroup }

// AddPlacementGroup adds a group and returns its ID. Partitions count for the
// strategy partition only.
func (a *AWS) AddPlacementGroup(name string, strategy types.PlacementStrategy, partitions int32) (id string) {
	a.locked(func(time.Time) {
		id = a.id("pg")
		g := &placementGroup{types.PlacementGroup{
			GroupId: &id, GroupName: &name, Strategy: strategy, State: types.PlacementGroupStateAvailable,
			GroupArn: aws.String(a.arn("ec2", a.config.Region, "placement-group/"+name)),
		}}
		switch strategy {
		case types.PlacementStrategyPartition:
			g.PartitionCount = &partitions
		case types.PlacementStrategySpread:
			g.SpreadLevel = types.SpreadLevelRack
		}
		a.placement = append(a.placement, g)
	})
	return id
}

// RemovePlacementGroup removes a group.
func (a *AWS) RemovePlacementGroup(id string) {
	a.locked(func(time.Time) {
		a.placement = slices.DeleteFunc(a.placement, func(g *placementGroup) bool { return *g.GroupId == id })
	})
}

// groupOf returns the placement group an instance is to run in, nil for none.
func (a *AWS) groupOf(w *want) (*placementGroup, error) {
	p := w.template.data.Placement
	if p == nil || p.GroupId == nil && p.GroupName == nil {
		return nil, nil
	}
	for _, g := range a.placement {
		if *g.GroupId == aws.ToString(p.GroupId) || *g.GroupName == aws.ToString(p.GroupName) {
			return g, nil
		}
	}
	return nil, refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", aws.ToString(cmp.Or(p.GroupId, p.GroupName)))
}

// place notes on the instance where it was put: reservation, group, partition.
// Without a wish it gets the partition with the fewest instances.
func (a *AWS) place(i *instance, w *want) {
	if r := i.reservation; r != nil {
		i.CapacityReservationId = r.CapacityReservationId
		if r.ReservationType == types.CapacityReservationTypeCapacityBlock {
			i.CapacityBlockId = r.CapacityBlockId
		}
	}
	i.CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{CapacityReservationPreference: w.preference()}
	if id := w.target(); id != "" {
		i.CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{
			CapacityReservationPreference: w.preference(), CapacityReservationTarget: &types.CapacityReservationTargetResponse{CapacityReservationId: &id},
		}
	}
	if i.group == nil {
		return
	}
	i.Placement.GroupName, i.Placement.GroupId = i.group.GroupName, i.group.GroupId
	if i.group.Strategy != types.PlacementStrategyPartition {
		return
	}
	if n := aws.ToInt32(w.template.data.Placement.PartitionNumber); n > 0 {
		i.Placement.PartitionNumber = &n
		return
	}
	fewest := math.MaxInt
	for n := int32(1); n <= *i.group.PartitionCount; n++ {
		count := a.instances.count(func(other *instance) bool {
			return other != i && other.group == i.group && !other.ended() && aws.ToInt32(other.Placement.PartitionNumber) == n
		})
		if count < fewest {
			fewest, i.Placement.PartitionNumber = count, aws.Int32(n)
		}
	}
}

var placementFilters = resources[*placementGroup]{
	tags: func(g *placementGroup) []types.Tag { return g.Tags },
	fields: fields[*placementGroup]{
		"group-name":   pointer(func(g *placementGroup) *string { return g.GroupName }),
		"group-arn":    pointer(func(g *placementGroup) *string { return g.GroupArn }),
		"state":        one(func(g *placementGroup) types.PlacementGroupState { return g.State }),
		"strategy":     one(func(g *placementGroup) types.PlacementStrategy { return g.Strategy }),
		"spread-level": one(func(g *placementGroup) types.SpreadLevel { return g.SpreadLevel }),
		"partition-count": one(func(g *placementGroup) string {
			return strconv.Itoa(int(aws.ToInt32(g.PartitionCount)))
		}),
	},
}

// DescribePlacementGroups describes placement groups.
func (e ec2API) DescribePlacementGroups(ctx context.Context, in *ec2.DescribePlacementGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
	return answer(ctx, e.a, "DescribePlacementGroups", in, func(time.Time) (*ec2.DescribePlacementGroupsOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, missing := byID(e.a.placement, in.GroupIds, func(g *placementGroup) string { return *g.GroupId })
		if len(missing) > 0 {
			return nil, refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", missing[0])
		}
		found, missing = byID(found, in.GroupNames, func(g *placementGroup) string { return *g.GroupName })
		if len(missing) > 0 {
			return nil, refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", missing[0])
		}
		found, err := placementFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribePlacementGroupsOutput{}
		for _, g := range found {
			out.PlacementGroups = append(out.PlacementGroups, copied(g.PlacementGroup))
		}
		return out, nil
	})
}
