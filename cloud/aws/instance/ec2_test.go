// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"karpenter/cloud/aws/client"
)

// ec2Double is the part of EC2 that instances live in. What it starts it shows
// after delay.
type ec2Double struct {
	client.EC2
	delay time.Duration

	mu        sync.Mutex
	instances map[string]*types.Instance
	answers   map[string]*ec2.CreateFleetOutput // by client token
	inputs    []*ec2.CreateFleetInput
	calls     map[string]int

	room     int                      // instances that fleets still get
	failures []types.CreateFleetError // in each answer
	lose     int                      // answers of CreateFleet to lose
	refuse   map[string]error         // by operation
	survive  bool                     // TerminateInstances of several leaves them alone
}

func newEC2() *ec2Double {
	return &ec2Double{
		instances: map[string]*types.Instance{}, answers: map[string]*ec2.CreateFleetOutput{},
		calls: map[string]int{}, refuse: map[string]error{}, room: 1 << 20,
	}
}

func apiError(code string) error { return &smithy.GenericAPIError{Code: code, Message: "refused"} }

func (d *ec2Double) enter(name string) error {
	d.calls[name]++
	return d.refuse[name]
}

func (d *ec2Double) count(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[name]
}

func (d *ec2Double) CreateFleet(_ context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter("CreateFleet"); err != nil {
		return nil, err
	}
	d.inputs = append(d.inputs, in)
	out, ok := d.answers[*in.ClientToken]
	if !ok {
		out = &ec2.CreateFleetOutput{FleetId: aws.String("fleet"), Errors: d.failures}
		for range min(int(*in.TargetCapacitySpecification.TotalTargetCapacity), d.room) {
			d.room--
			out.Instances = append(out.Instances, d.start(in))
		}
		d.answers[*in.ClientToken] = out
	}
	if d.lose > 0 {
		d.lose--
		return nil, errors.New("connection reset by peer")
	}
	return out, nil
}

// start makes an instance of the cheapest override.
func (d *ec2Double) start(in *ec2.CreateFleetInput) types.CreateFleetInstance {
	id := fmt.Sprintf("i-%03d", len(d.instances)+1)
	config, best := in.LaunchTemplateConfigs[0], in.LaunchTemplateConfigs[0].Overrides[0]
	for _, c := range in.LaunchTemplateConfigs {
		for _, o := range c.Overrides {
			if *o.Priority < *best.Priority {
				config, best = c, o
			}
		}
	}
	one := &types.Instance{
		InstanceId: &id, InstanceType: best.InstanceType, ImageId: best.ImageId, SubnetId: best.SubnetId, LaunchTime: aws.Time(time.Now()),
		Placement: &types.Placement{AvailabilityZone: best.AvailabilityZone, AvailabilityZoneId: aws.String(strings.Replace(*best.AvailabilityZone, "zone", "id", 1))},
		State:     &types.InstanceState{Name: types.InstanceStateNameRunning},
	}
	for _, spec := range in.TagSpecifications {
		if spec.ResourceType == types.ResourceTypeInstance {
			one.Tags = spec.Tags
		}
	}
	if in.TargetCapacitySpecification.DefaultTargetCapacityType == types.DefaultTargetCapacityTypeSpot {
		one.SpotInstanceRequestId = aws.String("sir-" + id)
	}
	if _, reservation, ok := strings.Cut(*config.LaunchTemplateSpecification.LaunchTemplateName, "cr-"); ok {
		one.CapacityReservationId = aws.String("cr-" + reservation)
		one.CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{
			CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
		}
	}
	d.instances[id] = one
	return types.CreateFleetInstance{
		InstanceIds: []string{id}, InstanceType: best.InstanceType,
		LaunchTemplateAndOverrides: &types.LaunchTemplateAndOverridesResponse{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecification{LaunchTemplateName: config.LaunchTemplateSpecification.LaunchTemplateName},
			Overrides: &types.FleetLaunchTemplateOverrides{
				InstanceType: best.InstanceType, AvailabilityZone: best.AvailabilityZone, SubnetId: best.SubnetId, ImageId: best.ImageId,
			},
		},
	}
}

func (d *ec2Double) shown(id string) *types.Instance {
	i := d.instances[id]
	if i == nil || time.Since(*i.LaunchTime) < d.delay {
		return nil
	}
	return i
}

func (d *ec2Double) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter("DescribeInstances"); err != nil {
		return nil, err
	}
	ids := in.InstanceIds
	for _, id := range ids {
		if d.shown(id) == nil {
			return nil, apiError("InvalidInstanceID.NotFound")
		}
	}
	if ids == nil {
		ids = slices.Sorted(maps.Keys(d.instances))
	}
	// Two on a page, the token is the next ID.
	out := &ec2.DescribeInstancesOutput{}
	for _, id := range ids {
		if i := d.shown(id); i == nil || i.State.Name == types.InstanceStateNameTerminated || id < aws.ToString(in.NextToken) {
			continue
		}
		if in.MaxResults != nil && len(out.Reservations) == 2 {
			out.NextToken = aws.String(id)
			break
		}
		out.Reservations = append(out.Reservations, types.Reservation{Instances: []types.Instance{copyOf(d.instances[id])}})
	}
	return out, nil
}

func copyOf(i *types.Instance) types.Instance {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err)
	}
	var out types.Instance
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func (d *ec2Double) TerminateInstances(_ context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter("TerminateInstances"); err != nil {
		return nil, err
	}
	out := &ec2.TerminateInstancesOutput{}
	for _, id := range in.InstanceIds {
		if d.shown(id) == nil {
			return nil, apiError("InvalidInstanceID.NotFound")
		}
		if d.survive && len(in.InstanceIds) > 1 {
			out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{InstanceId: aws.String(id), CurrentState: d.instances[id].State})
			continue
		}
		d.instances[id].State = &types.InstanceState{Name: types.InstanceStateNameShuttingDown}
		out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{InstanceId: aws.String(id), CurrentState: d.instances[id].State})
	}
	return out, nil
}

func (d *ec2Double) CreateTags(_ context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.enter("CreateTags"); err != nil {
		return nil, err
	}
	for _, id := range in.Resources {
		if d.shown(id) == nil {
			return nil, apiError("InvalidInstanceID.NotFound")
		}
		d.instances[id].Tags = append(d.instances[id].Tags, in.Tags...)
	}
	return &ec2.CreateTagsOutput{}, nil
}

// set changes an instance.
func (d *ec2Double) set(id string, change func(*types.Instance)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d.instances[id])
}

// alive returns the IDs of instances that run.
func (d *ec2Double) alive() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for id, i := range d.instances {
		if i.State.Name == types.InstanceStateNameRunning {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}
