// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/nodeclaim"
	"karpenter/cloud/loop"
)

// What Statuses finds, also the categories of its metric.
const (
	InstanceStatus Kind = "instance_status"
	SystemStatus   Kind = "system_status"
	EventStatus    Kind = "event_status"
)

const (
	// checking is the time between two looks at the statuses.
	checking = time.Minute
	// refusedRetry is that when the account does not let us look.
	refusedRetry = time.Hour
	// failing is how long a check must have failed.
	failing = 2 * time.Minute
)

// StatusAPI is the call to AWS that Statuses needs.
type StatusAPI interface {
	DescribeInstanceStatus(context.Context, *ec2.DescribeInstanceStatusInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error)
}

// StatusConfig configures Statuses. All fields are required unless the comment
// says otherwise.
type StatusConfig struct {
	EC2     StatusAPI
	Claims  *nodeclaim.Claims
	Clock   clock.PassiveClock
	Metrics *Metrics
	// ObserveOnly counts and reports unhealthy instances, and does nothing
	// else.
	ObserveOnly bool
}

// Statuses is the controller interruption.instancestatus.
type Statuses struct {
	config  StatusConfig
	counted map[fault]bool // that last
	refused bool           // was logged
}

// fault is something wrong with an instance.
type fault struct {
	id   string
	kind Kind
}

// NewStatuses returns the controller.
func NewStatuses(c StatusConfig) *Statuses {
	return &Statuses{config: c, counted: map[fault]bool{}}
}

// Register adds the controller to the manager.
func (s *Statuses) Register(mgr manager.Manager) error {
	return loop.After(mgr, "interruption.instancestatus", s.Check)
}

// Check deletes the claims whose instances are unhealthy; again is when to
// check next. One call runs at a time.
func (s *Statuses) Check(ctx context.Context) (again time.Duration, err error) {
	found, err := s.unhealthy(ctx)
	if client.Refused(err) {
		if !s.refused {
			log.FromContext(ctx).Error(err, "instances that fail their status checks are not replaced")
		}
		s.refused = true
		return refusedRetry, nil
	}
	if err != nil {
		return 0, err
	}
	s.refused = false
	byInstance, err := s.config.Claims.ByInstance(ctx)
	if err != nil {
		return 0, err
	}
	maps.DeleteFunc(s.counted, func(f fault, _ bool) bool { return !slices.Contains(found[f.id], f.kind) })
	var failures []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if claim := byInstance[id]; claim != nil {
			failures = append(failures, s.act(ctx, id, claim, found[id]))
		}
	}
	return checking, errors.Join(failures...)
}

func (s *Statuses) act(ctx context.Context, id string, claim *v1.NodeClaim, kinds []Kind) (err error) {
	news := false
	for _, kind := range kinds {
		if !s.counted[fault{id, kind}] {
			s.counted[fault{id, kind}] = true
			s.config.Metrics.unhealthy.WithLabelValues(string(kind)).Inc()
			news = true
		}
	}
	if news {
		s.config.Claims.Notify(ctx, claim, unhealthy())
		log.FromContext(ctx).Info("instance is unhealthy", "NodeClaim", claim.Name, "instance", id, "status", kinds)
	}
	if s.config.ObserveOnly {
		return nil
	}
	if kinds[0] != EventStatus { // what runs on a broken machine cannot be asked to leave
		if claim, err = s.config.Claims.Hurry(ctx, claim, s.config.Clock.Now()); claim == nil {
			return err
		}
	}
	return end(ctx, s.config.Claims, claim, kinds[0])
}

// unhealthy returns what is wrong with which instance, by ID, the worst first.
func (s *Statuses) unhealthy(ctx context.Context) (map[string][]Kind, error) {
	merged := map[string]types.InstanceStatus{}
	for _, filter := range []types.Filter{
		client.Filter("instance-status.status", string(types.SummaryStatusImpaired)),
		client.Filter("system-status.status", string(types.SummaryStatusImpaired)),
		client.Filter("event.code", eventCodes()...),
	} {
		input := &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{filter}, MaxResults: aws.Int32(1000)}
		for pages := ec2.NewDescribeInstanceStatusPaginator(s.config.EC2, input); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("describe instance status: %w", err)
			}
			for _, status := range page.InstanceStatuses {
				merged[aws.ToString(status.InstanceId)] = status
			}
		}
	}
	out := map[string][]Kind{}
	since := s.config.Clock.Now().Add(-failing)
	for id, status := range merged {
		if kinds := faults(&status, since); len(kinds) > 0 {
			out[id] = kinds
		}
	}
	return out, nil
}

// eventCodes are the scheduled events that end an instance, or stop its pods.
func eventCodes() []string {
	var out []string
	for _, code := range []types.EventCode{
		types.EventCodeInstanceReboot, types.EventCodeSystemReboot, types.EventCodeSystemMaintenance,
		types.EventCodeInstanceRetirement, types.EventCodeInstanceStop,
	} {
		out = append(out, string(code))
	}
	return out
}

// faults returns the problems of an instance: checks that have been failing at
// least since that time, and scheduled events.
func faults(status *types.InstanceStatus, since time.Time) []Kind {
	var out []Kind
	if broken(status.InstanceStatus, since) {
		out = append(out, InstanceStatus)
	}
	if broken(status.SystemStatus, since) {
		out = append(out, SystemStatus)
	}
	if slices.ContainsFunc(status.Events, func(e types.InstanceStatusEvent) bool {
		return slices.Contains(eventCodes(), string(e.Code)) && !over(&e)
	}) {
		out = append(out, EventStatus)
	}
	return out
}

// over reports whether the event has completed or was cancelled. EC2 shows such
// events for another week.
func over(e *types.InstanceStatusEvent) bool {
	description := aws.ToString(e.Description)
	return strings.HasPrefix(description, "[Completed]") || strings.HasPrefix(description, "[Canceled]")
}

func broken(summary *types.InstanceStatusSummary, since time.Time) bool {
	return summary != nil && slices.ContainsFunc(summary.Details, func(d types.InstanceStatusDetails) bool {
		return d.Status == types.StatusTypeFailed && d.ImpairedSince != nil && !d.ImpairedSince.After(since)
	})
}
