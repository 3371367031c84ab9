// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// instance is an instance with what EC2 does not tell.
type instance struct {
	types.Instance // but State
	state          types.InstanceStateName
	visible        time.Time // when calls see it
	pool           Pool
	subnet         *subnet
	addresses      int32
	userData       string
	volumes        []types.Volume
	public         bool         // it has a public IPv4 address
	reservation    *reservation // nil: none
	group          *placementGroup
	health         health
}

func (i *instance) zone() string { return i.pool.Zone }

// ended reports whether the instance is on its way out or gone.
func (i *instance) ended() bool {
	return i.state == types.InstanceStateNameShuttingDown || i.state == types.InstanceStateNameTerminated
}

// stateCodes are EC2's numbers for states.
var stateCodes = map[types.InstanceStateName]int32{
	types.InstanceStateNamePending: 0, types.InstanceStateNameRunning: 16, types.InstanceStateNameShuttingDown: 32,
	types.InstanceStateNameTerminated: 48, types.InstanceStateNameStopping: 64, types.InstanceStateNameStopped: 80,
}

func stateOf(name types.InstanceStateName) *types.InstanceState {
	return &types.InstanceState{Name: name, Code: aws.Int32(stateCodes[name])}
}

// seen is the instance as EC2 describes it.
func (i *instance) seen() types.Instance {
	out := copied(i.Instance)
	out.State = stateOf(i.state)
	return out
}

type instances struct {
	list []*instance // in order of launch
	byID map[string]*instance
}

func (l *instances) add(i *instance) {
	l.list = append(l.list, i)
	l.byID[*i.InstanceId] = i
}

func (l *instances) count(is func(*instance) bool) int {
	n := 0
	for _, i := range l.list {
		if is(i) {
			n++
		}
	}
	return n
}

// seenAt returns the instances that calls see.
func (l *instances) seenAt(now time.Time) []*instance {
	out := make([]*instance, 0, len(l.list))
	for _, i := range l.list {
		if !i.visible.After(now) {
			out = append(out, i)
		}
	}
	return out
}

// find returns the instances of the IDs, all of which must be seen. No IDs are
// all instances.
func (l *instances) find(ids []string, now time.Time) ([]*instance, error) {
	if len(ids) == 0 {
		return l.seenAt(now), nil
	}
	var out []*instance
	var missing []string
	for _, id := range ids {
		if ok, err := regexp.MatchString(`^i-[0-9a-f]{8,17}$`, id); err != nil || !ok {
			return nil, refuse("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		i := l.byID[id]
		switch {
		case i == nil || i.visible.After(now):
			missing = append(missing, id)
		case !slices.Contains(out, i):
			out = append(out, i)
		}
	}
	if len(missing) > 0 {
		return nil, doNotExist("InvalidInstanceID.NotFound", "instance ID", missing)
	}
	return out, nil
}

// booted is the step from pending to running.
func (a *AWS) booted(i *instance, at time.Time) {
	if i.state == types.InstanceStateNamePending {
		i.state = types.InstanceStateNameRunning
		a.announce(i, "running", at)
	}
}

// forgetAfter is how long EC2 tells of a terminated instance.
const forgetAfter = time.Hour

// end begins to terminate an instance.
func (a *AWS) end(i *instance, now time.Time) {
	if i.ended() {
		return
	}
	i.state = types.InstanceStateNameShuttingDown
	a.announce(i, "shutting-down", now)
	a.later(now.Add(a.config.ShutdownDelay), func(at time.Time) { a.terminated(i, at) })
}

// terminated gives back what the instance had.
func (a *AWS) terminated(i *instance, at time.Time) {
	i.state = types.InstanceStateNameTerminated
	i.subnet.used = max(0, i.subnet.used-i.addresses)
	if i.reservation != nil {
		i.reservation.used = max(0, i.reservation.used-1)
	} else {
		a.market.give(i.pool)
	}
	i.NetworkInterfaces, i.SecurityGroups, i.PrivateIpAddress, i.SubnetId, i.VpcId = nil, nil, nil, nil, nil
	i.PrivateDnsName = aws.String("")
	i.BlockDeviceMappings, i.volumes = nil, nil
	a.announce(i, "terminated", at)
	a.later(at.Add(forgetAfter), func(time.Time) {
		delete(a.instances.byID, *i.InstanceId)
		a.instances.list = slices.DeleteFunc(a.instances.list, func(other *instance) bool { return other == i })
	})
}

var instanceFilters = resources[*instance]{
	tags: func(i *instance) []types.Tag { return i.Tags },
	fields: fields[*instance]{
		"instance-id":             pointer(func(i *instance) *string { return i.InstanceId }),
		"image-id":                pointer(func(i *instance) *string { return i.ImageId }),
		"subnet-id":               pointer(func(i *instance) *string { return i.SubnetId }),
		"vpc-id":                  pointer(func(i *instance) *string { return i.VpcId }),
		"private-dns-name":        pointer(func(i *instance) *string { return i.PrivateDnsName }),
		"private-ip-address":      pointer(func(i *instance) *string { return i.PrivateIpAddress }),
		"availability-zone":       pointer(func(i *instance) *string { return i.Placement.AvailabilityZone }),
		"availability-zone-id":    pointer(func(i *instance) *string { return i.Placement.AvailabilityZoneId }),
		"placement-group-name":    pointer(func(i *instance) *string { return i.Placement.GroupName }),
		"capacity-reservation-id": pointer(func(i *instance) *string { return i.CapacityReservationId }),
		"instance-type":           one(func(i *instance) types.InstanceType { return i.InstanceType }),
		"instance-lifecycle":      one(func(i *instance) types.InstanceLifecycleType { return i.InstanceLifecycle }),
		"instance-state-name":     one(func(i *instance) types.InstanceStateName { return i.state }),
		"launch-time":             one(func(i *instance) string { return stamp(*i.LaunchTime) }),
	},
}

// DescribeInstances describes instances, each in a reservation of its own.
func (e ec2API) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return answer(ctx, e.a, "DescribeInstances", in, func(now time.Time) (*ec2.DescribeInstancesOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		if len(in.InstanceIds) > 0 && in.MaxResults != nil {
			return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
		}
		found, err := e.a.instances.find(in.InstanceIds, now)
		if err != nil {
			return nil, err
		}
		if found, err = instanceFilters.pick(found, in.Filters); err != nil {
			return nil, err
		}
		part, next, err := page(found, pages{5, 1000, 0}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeInstancesOutput{NextToken: next}
		for _, i := range part {
			out.Reservations = append(out.Reservations, types.Reservation{
				ReservationId: aws.String("r-" + (*i.InstanceId)[2:]), OwnerId: aws.String(e.a.config.Account), Instances: []types.Instance{i.seen()},
			})
		}
		return out, nil
	})
}

// TerminateInstances ends all of the instances, or none when one does not exist.
func (e ec2API) TerminateInstances(ctx context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	return answer(ctx, e.a, "TerminateInstances", in, func(now time.Time) (*ec2.TerminateInstancesOutput, error) {
		if len(in.InstanceIds) == 0 {
			return nil, refuse("MissingParameter", "The request must contain the parameter InstanceId")
		}
		found, err := e.a.instances.find(in.InstanceIds, now)
		if err != nil {
			return nil, err
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		out := &ec2.TerminateInstancesOutput{}
		for _, i := range found {
			before := i.state
			e.a.end(i, now)
			out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{
				InstanceId: aws.String(*i.InstanceId), PreviousState: stateOf(before), CurrentState: stateOf(i.state),
			})
		}
		return out, nil
	})
}

// RebootInstances reboots all of the instances, or none when one does not exist.
func (e ec2API) RebootInstances(ctx context.Context, in *ec2.RebootInstancesInput, _ ...func(*ec2.Options)) (*ec2.RebootInstancesOutput, error) {
	return answer(ctx, e.a, "RebootInstances", in, func(now time.Time) (*ec2.RebootInstancesOutput, error) {
		if len(in.InstanceIds) == 0 {
			return nil, refuse("MissingParameter", "The request must contain the parameter InstanceId")
		}
		if _, err := e.a.instances.find(in.InstanceIds, now); err != nil {
			return nil, err
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		return &ec2.RebootInstancesOutput{}, nil
	})
}

// CreateTags puts tags on resources, over those they have.
func (e ec2API) CreateTags(ctx context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	return answer(ctx, e.a, "CreateTags", in, func(now time.Time) (*ec2.CreateTagsOutput, error) {
		var put []func()
		for _, id := range in.Resources {
			list, err := e.a.tagList(id, now)
			if err != nil {
				return nil, err
			}
			with, err := withTags(*list, in.Tags)
			if err != nil {
				return nil, err
			}
			put = append(put, func() { *list = with })
		}
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		for _, do := range put {
			do()
		}
		return &ec2.CreateTagsOutput{}, nil
	})
}

// tagList returns where the tags of a resource are kept.
func (a *AWS) tagList(id string, now time.Time) (*[]types.Tag, error) {
	if t := a.templates.byID(id); t != nil {
		return &t.Tags, nil
	}
	if s := a.subnet(id); s != nil {
		return &s.Tags, nil
	}
	if i := a.image(id); i != nil {
		return &i.Tags, nil
	}
	if r := a.reservation(id); r != nil {
		return &r.Tags, nil
	}
	for n := range a.groups {
		if *a.groups[n].GroupId == id {
			return &a.groups[n].Tags, nil
		}
	}
	for _, g := range a.placement {
		if *g.GroupId == id {
			return &g.Tags, nil
		}
	}
	if len(id) > 2 && id[:2] == "i-" {
		found, err := a.instances.find([]string{id}, now)
		if err != nil {
			return nil, err
		}
		return &found[0].Tags, nil
	}
	return nil, refuse("InvalidID", "The ID '%s' is not valid", id)
}

// Machine is an instance with what only the user of a simulated AWS may know.
type Machine struct {
	types.Instance
	UserData string  // base64, as in its launch template
	Besides  float64 // dollars per hour for its volumes and its address
}

// Instances returns all instances that EC2 still knows, in order of launch,
// also those that calls do not see yet.
func (a *AWS) Instances() []Machine {
	var out []Machine
	a.locked(func(time.Time) {
		for _, i := range a.instances.list {
			out = append(out, Machine{i.seen(), i.userData, a.besides(i)})
		}
	})
	return out
}
