// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// health is what status checks say of an instance. Zero times are passed checks.
type health struct {
	instance, system time.Time // failing since
	events           []types.InstanceStatusEvent
}

func summary(name types.StatusName, failing time.Time) *types.InstanceStatusSummary {
	out := &types.InstanceStatusSummary{Status: types.SummaryStatusOk, Details: []types.InstanceStatusDetails{{Name: name, Status: types.StatusTypePassed}}}
	if !failing.IsZero() {
		out.Status = types.SummaryStatusImpaired
		out.Details[0].Status, out.Details[0].ImpairedSince = types.StatusTypeFailed, &failing
	}
	return out
}

func (i *instance) status() types.InstanceStatus {
	return types.InstanceStatus{
		InstanceId: aws.String(*i.InstanceId), AvailabilityZone: aws.String(i.zone()), InstanceState: stateOf(i.state), Events: copied(i.health.events),
		InstanceStatus: summary(types.StatusNameReachability, i.health.instance), SystemStatus: summary(types.StatusNameReachability, i.health.system),
	}
}

var statusFilters = resources[*instance]{fields: fields[*instance]{
	"instance-state-name":    one(func(i *instance) types.InstanceStateName { return i.state }),
	"availability-zone":      one((*instance).zone),
	"instance-status.status": one(func(i *instance) types.SummaryStatus { return i.status().InstanceStatus.Status }),
	"system-status.status":   one(func(i *instance) types.SummaryStatus { return i.status().SystemStatus.Status }),
	"event.code": func(i *instance) []string {
		var out []string
		for _, e := range i.health.events {
			out = append(out, string(e.Code))
		}
		return out
	},
}}

// DescribeInstanceStatus describes the status checks of running instances, and
// of others if asked for.
func (e ec2API) DescribeInstanceStatus(ctx context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	return answer(ctx, e.a, "DescribeInstanceStatus", in, func(now time.Time) (*ec2.DescribeInstanceStatusOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		found, err := e.a.instances.find(in.InstanceIds, now)
		if err != nil {
			return nil, err
		}
		var running []*instance
		for _, i := range found {
			if i.state == types.InstanceStateNameRunning || aws.ToBool(in.IncludeAllInstances) {
				running = append(running, i)
			}
		}
		if running, err = statusFilters.pick(running, in.Filters); err != nil {
			return nil, err
		}
		part, next, err := page(running, pages{5, 1000, 100}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeInstanceStatusOutput{NextToken: next}
		for _, i := range part {
			out.InstanceStatuses = append(out.InstanceStatuses, i.status())
		}
		return out, nil
	})
}

// The status checks of an instance, for Impair.
const (
	InstanceCheck = "instance"
	SystemCheck   = "system"
)

// Impair makes a status check of an instance fail from now on; Heal ends it.
func (a *AWS) Impair(id, check string) error {
	return a.instanceDo(id, func(i *instance, now time.Time) {
		if check == SystemCheck {
			i.health.system = now
		} else {
			i.health.instance = now
		}
	})
}

// Heal makes all status checks pass and cancels scheduled events.
func (a *AWS) Heal(id string) error {
	return a.instanceDo(id, func(i *instance, _ time.Time) { i.health = health{} })
}

// instanceDo does something to an instance.
func (a *AWS) instanceDo(id string, do func(*instance, time.Time)) error {
	err := fmt.Errorf("awsfake: there is no instance %q", id)
	a.locked(func(now time.Time) {
		if i := a.instances.byID[id]; i != nil {
			do(i, now)
			err = nil
		}
	})
	return err
}
