// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/template"
	"karpenter/model"
)

// request returns the fleet for one instance of the order, without the parts
// that depend on the number of instances: subnets, and the tags that name the
// claims. It is nil when no template has anything to launch.
func request(order *template.Want, templates []template.Template, tags map[string]string) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(1),
			DefaultTargetCapacityType: types.DefaultTargetCapacityType(launch.Market(order.Candidates, order.CapacityType)),
		},
	}
	allocation(in, order.Claim.Annotations[karpenterv1.PriceOverlayAppliedAnnotationKey] != "", order.OwnPrices)
	if order.Claim.Annotations[karpenterv1.NodeClaimMinValuesRelaxedAnnotationKey] != "true" {
		in.Context = order.Class.Spec.Context
	}
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: ec2Tags(tags)})
	}
	for _, t := range templates {
		config := types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(t.Name), Version: aws.String("$Latest"),
			},
		}
		for _, o := range launch.Overrides(t.Candidates, order.CapacityType) {
			if t.ReservationID != "" && o.ReservationID != t.ReservationID {
				continue
			}
			config.Overrides = append(config.Overrides, types.FleetLaunchTemplateOverridesRequest{
				InstanceType: types.InstanceType(o.InstanceType), ImageId: aws.String(t.ImageID),
				AvailabilityZone: aws.String(o.Zone), Priority: aws.Float64(o.Price.Dollars()),
			})
		}
		if len(config.Overrides) > 0 {
			in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, config)
		}
	}
	if len(in.LaunchTemplateConfigs) == 0 {
		return nil
	}
	return in
}

// allocation sets how EC2 chooses among the overrides. EC2 does not know prices
// from other sources, so these become priorities. For spot, extra costs that
// differ between nodes do not replace EC2's own choice by price and risk of
// interruption.
func allocation(in *ec2.CreateFleetInput, overlaid, ownPrices bool) {
	switch in.TargetCapacitySpecification.DefaultTargetCapacityType {
	case types.DefaultTargetCapacityTypeSpot:
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
		if overlaid {
			in.SpotOptions.AllocationStrategy = types.SpotAllocationStrategyCapacityOptimizedPrioritized
		}
	case types.DefaultTargetCapacityTypeOnDemand:
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
		if overlaid || ownPrices {
			in.OnDemandOptions.AllocationStrategy = types.FleetOnDemandAllocationStrategyPrioritized
		}
	case types.DefaultTargetCapacityTypeReservedCapacity:
		in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{
			ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation},
		}
	}
}

// addressed returns the request with n instances as target, with the subnets, by
// zone, and with tags of the instances that name the claims. Zones without
// subnet are left out.
func addressed(in *ec2.CreateFleetInput, subnets map[string]string, claims []Claim) *ec2.CreateFleetInput {
	out, target := *in, *in.TargetCapacitySpecification
	target.TotalTargetCapacity = aws.Int32(int32(len(claims)))
	out.TargetCapacitySpecification = &target
	out.LaunchTemplateConfigs = nil
	for _, config := range in.LaunchTemplateConfigs {
		var overrides []types.FleetLaunchTemplateOverridesRequest
		for _, o := range config.Overrides {
			if id, ok := subnets[aws.ToString(o.AvailabilityZone)]; ok {
				o.SubnetId = aws.String(id)
				overrides = append(overrides, o)
			}
		}
		if config.Overrides = overrides; len(overrides) > 0 {
			out.LaunchTemplateConfigs = append(out.LaunchTemplateConfigs, config)
		}
	}
	out.TagSpecifications = slices.Clone(in.TagSpecifications)
	for i, spec := range out.TagSpecifications {
		if spec.ResourceType == types.ResourceTypeInstance {
			out.TagSpecifications[i].Tags = slices.Concat(spec.Tags, ec2Tags(launchTags(claims)))
		}
	}
	return &out
}

// digest stands for the values: equal ones have equal digests.
func digest(values ...any) string {
	const characters = 32
	text, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("digest of a launch: %v", err)) // they are plain values
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:characters]
}

// needs returns how many addresses a machine will need at least, by zone: one
// for each pod of the smallest type.
func needs(order *template.Want) map[string]int64 {
	out := map[string]int64{}
	for _, c := range order.Candidates {
		pods := c.Type.Capacity[corev1.ResourcePods]
		for _, o := range c.Offerings {
			if o.CapacityType() != order.CapacityType {
				continue
			}
			least, ok := out[o.Zone()]
			if !ok {
				least = math.MaxInt64
			}
			out[o.Zone()] = min(least, pods.Value())
		}
	}
	return out
}

// offeringOf returns the offering of the order that is launched by type and zone,
// nil if there is none.
func offeringOf(o *template.Want, instanceType, zone string) *cloud.Offering {
	for _, c := range o.Candidates {
		if c.Type.Name != instanceType {
			continue
		}
		for _, offering := range c.Offerings {
			if offering.Zone() == zone && offering.CapacityType() == o.CapacityType {
				return offering
			}
		}
	}
	return nil
}

// reserved reports whether the order is for reserved capacity.
func reserved(o *template.Want) bool { return o.CapacityType == model.Reserved }
