// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func (l *lab) receive() []sqstypes.Message {
	l.Helper()
	out, err := l.SQS.ReceiveMessage(l.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String("https://any.host/111122223333/cluster"), MaxNumberOfMessages: 10, VisibilityTimeout: 20,
		AttributeNames: []sqstypes.QueueAttributeName{"SentTimestamp"},
	})
	l.must(err)
	return out.Messages
}

// told reads the queue empty and returns what the events say: time, type, who
// and what.
func (l *lab) told() []string {
	l.Helper()
	lines := []string{}
	for messages := l.receive(); len(messages) > 0; messages = l.receive() {
		for _, m := range messages {
			var e struct {
				Version, Source, Account, Region string
				DetailType                       string `json:"detail-type"`
				Time                             time.Time
				Detail                           struct {
					InstanceID       string `json:"instance-id"`
					State            string
					InstanceAction   string `json:"instance-action"`
					Service          string
					Category         string `json:"eventTypeCategory"`
					AffectedEntities []struct{ EntityValue string }
				}
			}
			l.must(json.Unmarshal([]byte(*m.Body), &e))
			if e.Version != "0" || e.Account != "111122223333" || e.Region != "us-west-2" {
				l.Errorf("%s", *m.Body)
			}
			lines = append(lines, strings.Join(strings.Fields(fmt.Sprint(e.Time.Format("15:04:05"), " ", e.Source, ": ", e.DetailType, " ", e.Detail.State, e.Detail.InstanceAction, " ", e.Detail.Category, len(e.Detail.AffectedEntities))), " "))
			_, err := l.SQS.DeleteMessage(l.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String("https://any.host/111122223333/cluster"), ReceiptHandle: m.ReceiptHandle})
			l.must(err)
		}
	}
	return lines
}

func (l *lab) hears(want ...string) {
	l.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, l.told()); diff != "" {
		l.Error(diff)
	}
}

func TestSpotInterruption(t *testing.T) {
	l := newLab(t, func(c *Config) { c.BootDelay, c.ShutdownDelay = 30*time.Second, 40*time.Second })
	id := l.launch(Spot, l.override("m5.large", 0))
	l.clock.Step(time.Minute)
	l.hears("12:00:00 aws.ec2: EC2 Instance State-change Notification pending 0", "12:00:30 aws.ec2: EC2 Instance State-change Notification running 0")
	l.must(l.Rebalance(id))
	l.must(l.Interrupt(id))
	l.hears("12:01:00 aws.ec2: EC2 Instance Rebalance Recommendation 0", "12:01:00 aws.ec2: EC2 Spot Instance Interruption Warning terminate 0")
	l.clock.Step(notice - time.Second)
	l.hears()
	if got := l.state(id); got != "running" {
		t.Error(got)
	}
	l.clock.Step(time.Minute)
	l.hears("12:03:00 aws.ec2: EC2 Instance State-change Notification shutting-down 0", "12:03:40 aws.ec2: EC2 Instance State-change Notification terminated 0")
	if got := l.state(id); got != "terminated" {
		t.Error(got)
	}
}

func TestScheduledChangeIsAHealthEvent(t *testing.T) {
	l := newLab(t, nil)
	a, b := l.launch(OnDemand, l.override("m5.large", 0)), l.launch(OnDemand, l.override("m5.large", 0))
	l.told()
	l.must(l.Schedule(types.EventCodeInstanceStop, l.clock.Now().Add(time.Hour), a, b))
	l.hears("12:00:00 aws.health: AWS Health Event scheduledChange2")
	if err := l.Interrupt("i-0"); err == nil {
		t.Error("an unknown instance was interrupted")
	}
}

func TestMessagesAreHiddenNotGone(t *testing.T) {
	l := newLab(t, nil)
	l.must(l.SendMessage("cluster", "hello"))
	first := l.receive()
	if len(first) != 1 || *first[0].Body != "hello" || *first[0].MD5OfBody != "5d41402abc4b2a76b9719d911017c592" || first[0].Attributes["SentTimestamp"] != "1795262400000" {
		t.Fatalf("%+v", first)
	}
	if again := l.receive(); len(again) != 0 {
		t.Errorf("received while hidden: %v", *again[0].Body)
	}
	l.clock.Step(20 * time.Second)
	second := l.receive()
	if len(second) != 1 || *second[0].ReceiptHandle == *first[0].ReceiptHandle {
		t.Fatalf("%+v", second)
	}
	remove := func(receipt string) error {
		_, err := l.SQS.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String("https://any.host/111122223333/cluster"), ReceiptHandle: &receipt})
		return err
	}
	l.refused(remove("x"), "ReceiptHandleIsInvalid")
	l.must(remove(*first[0].ReceiptHandle))
	l.must(remove(*first[0].ReceiptHandle))
	if left := l.Messages("cluster"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	for range 12 {
		l.must(l.SendMessage("cluster", "x"))
	}
	if n, m := len(l.receive()), len(l.receive()); n != 10 || m != 2 {
		t.Errorf("received %d, then %d", n, m)
	}
	l.clock.Step(retention + time.Second)
	if left := l.Messages("cluster"); len(left) != 0 {
		t.Errorf("kept too long: %v", left)
	}
}

func TestQueueThatIsNotThere(t *testing.T) {
	l := newLab(t, nil)
	_, err := l.SQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("other")})
	l.refused(err, "AWS.SimpleQueueService.NonExistentQueue")
	l.RemoveQueue("cluster")
	_, err = l.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("https://any.host/111122223333/cluster")})
	l.refused(err, "AWS.SimpleQueueService.NonExistentQueue")
	if err := l.SendMessage("cluster", "x"); err == nil {
		t.Error("sent to a queue that is gone")
	}
}

// A long poll ends with the first message, with what is due meanwhile, when its
// time is over, or with the caller.
func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Config{Clock: clock.RealClock{}, Types: []string{"m5.large"}})
		if err != nil {
			t.Fatal(err)
		}
		poll := func(ctx context.Context) (int, time.Duration, error) {
			begin := time.Now()
			out, err := a.Services().SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(a.queueURL("cluster")), WaitTimeSeconds: 20, MaxNumberOfMessages: 10})
			if err != nil {
				return 0, time.Since(begin), err
			}
			return len(out.Messages), time.Since(begin), nil
		}
		expect := func(ctx context.Context, messages int, after time.Duration, fails bool) {
			t.Helper()
			if n, took, err := poll(ctx); n != messages || took != after || (err != nil) != fails {
				t.Errorf("%d messages after %v, %v", n, took, err)
			}
		}
		expect(t.Context(), 0, 20*time.Second, false)
		time.AfterFunc(3*time.Second, func() { _ = a.SendMessage("cluster", "x") })
		expect(t.Context(), 1, 3*time.Second, false)
		a.locked(func(now time.Time) {
			a.later(now.Add(7*time.Second), func(at time.Time) { a.send(a.queues["cluster"], "y", at) })
		})
		expect(t.Context(), 1, 7*time.Second, false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect(ctx, 0, time.Second, true)
		time.AfterFunc(time.Second, func() { a.RemoveQueue("cluster") })
		expect(t.Context(), 0, 20*time.Second, true)
	})
}
