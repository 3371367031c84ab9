// SPDX-License-Identifier: Apache-2.0

package interruption_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/interruption"
	"karpenter/control/controltest"
)

// statuses is EC2 with one instance, as all filters find it, in two pages.
type statuses struct{ of types.InstanceStatus }

func (s statuses) DescribeInstanceStatus(_ context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	if in.NextToken == nil {
		return &ec2.DescribeInstanceStatusOutput{NextToken: aws.String("more")}, nil
	}
	return &ec2.DescribeInstanceStatusOutput{InstanceStatuses: []types.InstanceStatus{s.of}}, nil
}

// TestWhatIsUnhealthy tells which statuses end a claim.
func TestWhatIsUnhealthy(t *testing.T) {
	event := func(code types.EventCode, description string) types.InstanceStatus {
		return types.InstanceStatus{Events: []types.InstanceStatusEvent{{Code: code, Description: &description}}}
	}
	summary := func(status types.StatusType, ago time.Duration, now time.Time) *types.InstanceStatusSummary {
		return &types.InstanceStatusSummary{Status: types.SummaryStatusImpaired, Details: []types.InstanceStatusDetails{
			{Name: types.StatusNameReachability, Status: types.StatusTypePassed}, {Name: types.StatusNameReachability, Status: status, ImpairedSince: aws.Time(now.Add(-ago))},
		}}
	}
	for name, test := range map[string]struct {
		status func(now time.Time) types.InstanceStatus
		ends   bool
	}{
		"reboot": {func(time.Time) types.InstanceStatus {
			return event("instance-reboot", "The instance is scheduled for a reboot")
		}, true},
		"completed": {func(time.Time) types.InstanceStatus {
			return event("instance-reboot", "[Completed] The instance was rebooted")
		}, false},
		"canceled": {func(time.Time) types.InstanceStatus { return event("system-maintenance", "[Canceled] Maintenance") }, false},
		"other":    {func(time.Time) types.InstanceStatus { return event("instance-birthday", "Cake") }, false},
		"failed": {func(now time.Time) types.InstanceStatus {
			return types.InstanceStatus{SystemStatus: summary("failed", 120*time.Second, now)}
		}, true},
		"briefly": {func(now time.Time) types.InstanceStatus {
			return types.InstanceStatus{SystemStatus: summary("failed", 119*time.Second, now)}
		}, false},
		"unsure": {func(now time.Time) types.InstanceStatus {
			return types.InstanceStatus{InstanceStatus: summary("insufficient-data", time.Hour, now)}
		}, false},
		"disk": {func(now time.Time) types.InstanceStatus {
			return types.InstanceStatus{AttachedEbsStatus: &types.EbsStatusSummary{Status: types.SummaryStatusImpaired, Details: []types.EbsStatusDetails{{Status: "failed", ImpairedSince: aws.Time(now.Add(-time.Hour))}}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := controltest.New(t)
			w := newWorld(t, c)
			if err := w.machine([]string{"a", "on-demand"}); err != nil {
				t.Fatal(err)
			}
			status := test.status(c.Clock.Now())
			status.InstanceId = aws.String(w.ids["a"])
			w.status.EC2 = statuses{status}
			s := interruption.NewStatuses(w.status)
			again, err := s.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			claims, err := w.status.Claims.ByInstance(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ended := !claims[w.ids["a"]].DeletionTimestamp.IsZero()
			if diff := cmp.Diff([]any{test.ends, time.Minute}, []any{ended, again}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzParse holds what is read of any text to what the rest relies on.
func FuzzParse(f *testing.F) {
	f.Add(`{"version":"0","source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"i-1","state":"stopped"}}`)
	f.Add(`{"version":"0","source":"aws.health","detail-type":"AWS Health Event","detail":{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":""},{}]}}`)
	f.Add(`{"version":"0","source":"aws.ec2","detail-type":"EC2 Instance Rebalance Recommendation"}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, body string) {
		m, err := interruption.Parse(body)
		if (err != nil || m.Kind == interruption.NoOp) && len(m.Instances) > 0 {
			t.Errorf("instances %v of nothing", m.Instances)
		}
		for _, id := range m.Instances {
			if id == "" {
				t.Error("an instance without ID")
			}
		}
	})
}

// TestLongPoll: a poll waits for the first message, and ends with the process
// without an error.
func TestLongPoll(t *testing.T) {
	account, err := awsfake.New(awsfake.Config{Clock: clock.RealClock{}, Types: []string{"m5.large"}})
	if err != nil {
		t.Fatal(err)
	}
	c := controltest.New(t)
	w := newWorld(t, c)
	queue := interruption.NewQueue(interruption.QueueConfig{
		SQS: account.Services().SQS, Name: "cluster", Claims: w.status.Claims, Clock: clock.RealClock{},
		Metrics: interruption.NewMetrics(prometheus.NewRegistry(), nil), Shortages: w.short,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	poll := func() {
		_, err := queue.Poll(ctx)
		ended <- err
	}
	go poll()
	if err := account.SendMessage("cluster", ""); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || len(account.Messages("cluster")) > 0 {
		t.Errorf("%v, %d messages left", err, len(account.Messages("cluster")))
	}
	go poll()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
