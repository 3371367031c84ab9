// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

// fleetAnswer is what a client token was answered with.
type fleetAnswer struct {
	request string
	out     *ec2.CreateFleetOutput
}

// tokenLife is how long a client token is remembered.
const tokenLife = 24 * time.Hour

// candidate is one override of a fleet: a pool it may buy from.
type candidate struct {
	want
	override types.FleetLaunchTemplateOverridesRequest
	price    float64 // dollars per hour
	priority float64 // smaller is earlier
	bought   []*instance
}

// CreateFleet starts instances at once. Of a repeated call with the same client
// token it returns the first answer.
func (e ec2API) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	return answer(ctx, e.a, "CreateFleet", in, func(now time.Time) (*ec2.CreateFleetOutput, error) {
		token, request, err := fingerprint(in)
		if err != nil {
			return nil, err
		}
		if before := e.a.fleets[token]; before != nil && token != "" {
			if before.request != request {
				return nil, refuse("IdempotentParameterMismatch", "The request uses the same client token as a previous, but non-identical request. Do not reuse a client token with different requests, unless the requests are identical")
			}
			return copied(before.out), nil
		}
		fleet := e.a.id("fleet")
		candidates, err := e.a.candidates(in, fleet, now)
		if err != nil {
			return nil, err
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		out := e.a.buy(in, candidates, now)
		out.FleetId = &fleet
		if token != "" {
			e.a.fleets[token] = &fleetAnswer{request, copied(out)}
			e.a.later(now.Add(tokenLife), func(time.Time) { delete(e.a.fleets, token) })
		}
		return out, nil
	})
}

// fingerprint returns the client token and a text that is the same for requests
// that are the same but for it.
func fingerprint(in *ec2.CreateFleetInput) (token, request string, err error) {
	without := *in
	without.ClientToken = nil
	text, err := json.Marshal(without)
	return aws.ToString(in.ClientToken), string(text), err
}

// candidates are the overrides of the request, in order.
func (a *AWS) candidates(in *ec2.CreateFleetInput, fleet string, now time.Time) ([]*candidate, error) {
	if err := checkFleet(in); err != nil {
		return nil, err
	}
	wanted, err := withTags(nil, tagged(in.TagSpecifications, types.ResourceTypeInstance))
	if err != nil {
		return nil, err
	}
	var out []*candidate
	for _, config := range in.LaunchTemplateConfigs {
		s := config.LaunchTemplateSpecification
		if s == nil {
			return nil, refuse("MissingParameter", "The request must contain the parameter LaunchTemplateSpecification")
		}
		template, err := a.templates.find(s.LaunchTemplateName, s.LaunchTemplateId)
		if err != nil {
			return nil, err
		}
		overrides := config.Overrides
		if len(overrides) == 0 {
			overrides = []types.FleetLaunchTemplateOverridesRequest{{}}
		}
		for _, o := range overrides {
			c := &candidate{override: copied(o)}
			c.want = want{template: template, tags: wanted, fleet: fleet, market: marketOf(in, template)}
			c.typ = cmp.Or(string(o.InstanceType), string(template.data.InstanceType))
			c.image = cmp.Or(aws.ToString(o.ImageId), aws.ToString(template.data.ImageId))
			if c.subnet, err = a.subnetOf(o, template); err != nil {
				return nil, err
			}
			c.price, _ = a.market.price(c.pool(), now)
			c.priority = math.Inf(1)
			if o.Priority != nil {
				c.priority = *o.Priority
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func checkFleet(in *ec2.CreateFleetInput) error {
	target := in.TargetCapacitySpecification
	switch {
	case in.Type != types.FleetTypeInstant:
		return refuse("InvalidParameterValue", "awsfake has fleets of type instant only, not '%s'", in.Type)
	case target == nil || target.TotalTargetCapacity == nil:
		return refuse("MissingParameter", "The request must contain the parameter TargetCapacitySpecification")
	case *target.TotalTargetCapacity < 1 || *target.TotalTargetCapacity > 10000:
		return refuse("InvalidParameterValue", "The target capacity %d is not between 1 and 10000", *target.TotalTargetCapacity)
	case len(in.LaunchTemplateConfigs) == 0:
		return refuse("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
	case target.OnDemandTargetCapacity != nil || target.SpotTargetCapacity != nil:
		return refuse("InvalidParameterCombination", "awsfake has fleets of one default target capacity type only")
	case target.DefaultTargetCapacityType != types.DefaultTargetCapacityTypeReservedCapacity && in.ReservedCapacityOptions != nil:
		return refuse("InvalidParameterCombination", "ReservedCapacityOptions can be specified only with the default target capacity type reserved-capacity")
	case target.DefaultTargetCapacityType != types.DefaultTargetCapacityTypeSpot && in.SpotOptions != nil,
		target.DefaultTargetCapacityType == types.DefaultTargetCapacityTypeCapacityBlock && in.OnDemandOptions != nil:
		return refuse("InvalidParameterCombination", "The options do not go with the default target capacity type '%s'", target.DefaultTargetCapacityType)
	}
	return nil
}

// marketOf returns the capacity type that the fleet launches with a template.
func marketOf(in *ec2.CreateFleetInput, t *template) string {
	switch in.TargetCapacitySpecification.DefaultTargetCapacityType {
	case types.DefaultTargetCapacityTypeSpot:
		return Spot
	case types.DefaultTargetCapacityTypeCapacityBlock:
		return string(types.MarketTypeCapacityBlock)
	case types.DefaultTargetCapacityTypeReservedCapacity:
		return string(types.MarketTypeInterruptibleCapacityReservation)
	}
	if o := t.data.InstanceMarketOptions; o != nil && o.MarketType != "" {
		return string(o.MarketType)
	}
	return OnDemand
}

// subnetOf is where an override wants its instances.
func (a *AWS) subnetOf(o types.FleetLaunchTemplateOverridesRequest, t *template) (*subnet, error) {
	id := aws.ToString(o.SubnetId)
	if id == "" && len(t.data.NetworkInterfaces) > 0 {
		id = aws.ToString(t.data.NetworkInterfaces[0].SubnetId)
	}
	if id == "" {
		return nil, refuse("VPCIdNotSpecified", "No default VPC for this user.")
	}
	s := a.subnet(id)
	if s == nil {
		return nil, doNotExist("InvalidSubnetID.NotFound", "subnet ID", []string{id})
	}
	if o.AvailabilityZone != nil && *o.AvailabilityZone != *s.AvailabilityZone {
		return nil, refuse("InvalidParameterValue", "Subnet %s is in the availability zone %s, not in %s", id, *s.AvailabilityZone, *o.AvailabilityZone)
	}
	return s, nil
}

// buy starts instances from the candidates in the order of the allocation
// strategy until the target is met. Candidates that have nothing, or not
// enough, are in the errors.
func (a *AWS) buy(in *ec2.CreateFleetInput, candidates []*candidate, now time.Time) *ec2.CreateFleetOutput {
	target := int(*in.TargetCapacitySpecification.TotalTargetCapacity)
	out := &ec2.CreateFleetOutput{}
	ordered := a.ordered(in, candidates, target)
	for _, c := range ordered {
		var err error
		if target > 0 {
			err = a.check(&c.want, now)
		}
		for err == nil && target > 0 {
			var made *instance
			if made, err = a.start(&c.want, now); err == nil {
				c.bought = append(c.bought, made)
				target--
			}
		}
		if err != nil {
			out.Errors = append(out.Errors, c.failed(err))
		}
		if len(c.bought) > 0 {
			out.Instances = append(out.Instances, c.delivered())
		}
	}
	return out
}

// ordered sorts the candidates as the strategy of the request has it; what is
// equal stays in the request's order.
func (a *AWS) ordered(in *ec2.CreateFleetInput, candidates []*candidate, target int) []*candidate {
	byPrice := func(x, y *candidate) int { return cmp.Compare(x.price, y.price) }
	byPriority := func(x, y *candidate) int { return cmp.Compare(x.priority, y.priority) }
	// A pool that has enough for all is as good as any; else the deeper first.
	byDepth := func(x, y *candidate) int { return cmp.Compare(a.depth(y, target), a.depth(x, target)) }
	orders := []func(x, y *candidate) int{byPrice}
	switch spot, onDemand := in.SpotOptions, in.OnDemandOptions; {
	case spot != nil:
		orders = map[types.SpotAllocationStrategy][]func(x, y *candidate) int{
			types.SpotAllocationStrategyPriceCapacityOptimized:       {byDepth, byPrice},
			types.SpotAllocationStrategyCapacityOptimized:            {byDepth},
			types.SpotAllocationStrategyCapacityOptimizedPrioritized: {byDepth, byPriority},
		}[spot.AllocationStrategy]
		if orders == nil {
			orders = []func(x, y *candidate) int{byPrice}
		}
	case onDemand != nil && onDemand.AllocationStrategy == types.FleetOnDemandAllocationStrategyPrioritized:
		orders = []func(x, y *candidate) int{byPriority}
	}
	out := slices.Clone(candidates)
	slices.SortStableFunc(out, func(x, y *candidate) int {
		for _, order := range orders {
			if c := order(x, y); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// depth is how many of the wanted instances the candidate's pool has.
func (a *AWS) depth(c *candidate, target int) int {
	left, limited := a.market.left[c.pool()]
	if !limited {
		return target
	}
	return min(target, int(left))
}

// origin is which template and override of the request is meant.
func (c *candidate) origin() *types.LaunchTemplateAndOverridesResponse {
	return &types.LaunchTemplateAndOverridesResponse{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecification{LaunchTemplateId: aws.String(*c.template.LaunchTemplateId), Version: aws.String("1")},
		Overrides: &types.FleetLaunchTemplateOverrides{
			InstanceType: types.InstanceType(c.typ), AvailabilityZone: aws.String(c.zone()), SubnetId: aws.String(*c.subnet.SubnetId), ImageId: copied(c.override.ImageId),
			Priority: copied(c.override.Priority), MaxPrice: copied(c.override.MaxPrice), WeightedCapacity: copied(c.override.WeightedCapacity),
		},
	}
}

func (c *candidate) lifecycle() types.InstanceLifecycle { return types.InstanceLifecycle(c.market) }

func (c *candidate) failed(err error) types.CreateFleetError {
	out := types.CreateFleetError{LaunchTemplateAndOverrides: c.origin(), Lifecycle: c.lifecycle()}
	var api smithy.APIError
	if errors.As(err, &api) {
		out.ErrorCode, out.ErrorMessage = aws.String(api.ErrorCode()), aws.String(api.ErrorMessage())
	}
	return out
}

func (c *candidate) delivered() types.CreateFleetInstance {
	out := types.CreateFleetInstance{LaunchTemplateAndOverrides: c.origin(), Lifecycle: c.lifecycle(), InstanceType: types.InstanceType(c.typ), Platform: c.bought[0].Platform}
	for _, i := range c.bought {
		out.InstanceIds = append(out.InstanceIds, *i.InstanceId)
	}
	return out
}

// RunInstances says whether an instance could be started: it is for dry runs
// only, as Karpenter starts instances with CreateFleet.
func (e ec2API) RunInstances(ctx context.Context, in *ec2.RunInstancesInput, _ ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	return answer(ctx, e.a, "RunInstances", in, func(now time.Time) (*ec2.RunInstancesOutput, error) {
		w, err := e.a.wantOf(in)
		if err != nil {
			return nil, err
		}
		if err := e.a.check(w, now); err != nil {
			return nil, err
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		return nil, refuse("UnsupportedOperation", "awsfake runs instances with CreateFleet only; RunInstances is for dry runs")
	})
}

// wantOf is the instance that a call of RunInstances describes.
func (a *AWS) wantOf(in *ec2.RunInstancesInput) (*want, error) {
	w := &want{market: OnDemand, template: &template{}, typ: string(in.InstanceType), image: aws.ToString(in.ImageId)}
	if in.LaunchTemplate != nil {
		found, err := a.templates.find(in.LaunchTemplate.LaunchTemplateName, in.LaunchTemplate.LaunchTemplateId)
		if err != nil {
			return nil, err
		}
		// What the request says replaces what the template says.
		w.template = &template{LaunchTemplate: found.LaunchTemplate, data: found.data}
		w.typ, w.image = cmp.Or(w.typ, string(found.data.InstanceType)), cmp.Or(w.image, aws.ToString(found.data.ImageId))
	}
	subnet := aws.ToString(in.SubnetId)
	if len(in.NetworkInterfaces) > 0 {
		w.template.data.NetworkInterfaces = nil
		for _, i := range in.NetworkInterfaces {
			subnet = cmp.Or(subnet, aws.ToString(i.SubnetId))
			w.template.data.NetworkInterfaces = append(w.template.data.NetworkInterfaces, types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
				DeviceIndex: i.DeviceIndex, NetworkCardIndex: i.NetworkCardIndex, InterfaceType: i.InterfaceType, Groups: i.Groups,
				AssociatePublicIpAddress: i.AssociatePublicIpAddress, Ipv4PrefixCount: i.Ipv4PrefixCount,
			})
		}
	}
	if p := in.IamInstanceProfile; p != nil {
		w.template.data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: p.Name, Arn: p.Arn}
	}
	if w.subnet = a.subnet(subnet); w.subnet == nil {
		return nil, doNotExist("InvalidSubnetID.NotFound", "subnet ID", []string{subnet})
	}
	return w, nil
}
