// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/nodeclaim"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/loop"
	"karpenter/model"
)

const (
	// batch is how many messages are received, and dealt with, at once.
	batch = 10
	// hidden is the number of seconds after which a message that was not
	// handled is delivered again.
	hidden = 20
	// patience is how many seconds a call waits for the first message.
	patience = 20
	// pause is how long an empty queue is left alone that did not wait.
	pause = time.Second
)

// QueueConfig configures a Queue. All fields are required.
type QueueConfig struct {
	SQS     client.SQS
	Name    string // of the queue
	Claims  *nodeclaim.Claims
	Clock   clock.PassiveClock
	Metrics *Metrics
	// Shortages records interruptions of spot capacity and of reservations.
	Shortages *shortage.Log
	// MarkRebalance records rebalance recommendations on NodeClaims, so that
	// decisions can act on them.
	MarkRebalance bool
}

// Queue is the controller interruption.
type Queue struct {
	config QueueConfig
	url    string // "" = to be found out
}

// NewQueue returns the controller.
func NewQueue(c QueueConfig) *Queue { return &Queue{config: c} }

// Register adds the controller to the manager.
func (q *Queue) Register(mgr manager.Manager) error { return loop.After(mgr, "interruption", q.Poll) }

// Poll waits for messages and handles them; again is when to poll next. It
// fails if the queue or the claims cannot be read. A message that cannot be
// handled is logged. One call runs at a time.
func (q *Queue) Poll(ctx context.Context) (again time.Duration, err error) {
	began := q.config.Clock.Now()
	messages, err := q.receive(ctx)
	if ctx.Err() != nil {
		return pause, nil // the process ends
	}
	if err != nil {
		q.url = "" // it may come back under another
		return 0, fmt.Errorf("interruption queue %s: %w", q.config.Name, err)
	}
	if len(messages) == 0 {
		return max(time.Nanosecond, pause-q.config.Clock.Since(began)), nil
	}
	claims, err := q.config.Claims.ByInstance(ctx)
	if err != nil {
		return 0, fmt.Errorf("claims of the instances that messages name: %w", err)
	}
	var running sync.WaitGroup
	for _, some := range byInstance(messages) {
		running.Go(func() {
			for _, p := range some {
				q.process(ctx, p, claims)
			}
		})
	}
	running.Wait()
	return time.Nanosecond, nil
}

// parsed is a message of the queue and what it says.
type parsed struct {
	types.Message
	says Message
	err  error
}

// byInstance returns the messages in groups to be dealt with at the same time. Those
// that begin with the same instance follow each other.
func byInstance(messages []types.Message) [][]parsed {
	var out [][]parsed
	at := map[string]int{}
	for _, m := range messages {
		p := parsed{Message: m}
		p.says, p.err = Parse(aws.ToString(m.Body))
		if len(p.says.Instances) == 0 {
			out = append(out, []parsed{p})
			continue
		}
		first := p.says.Instances[0]
		if i, ok := at[first]; ok {
			out[i] = append(out[i], p)
			continue
		}
		at[first] = len(out)
		out = append(out, []parsed{p})
	}
	return out
}

func (q *Queue) receive(ctx context.Context) ([]types.Message, error) {
	if q.url == "" {
		out, err := q.config.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.config.Name})
		if err != nil {
			return nil, err
		}
		q.url = aws.ToString(out.QueueUrl)
	}
	out, err := q.config.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &q.url, MaxNumberOfMessages: batch, VisibilityTimeout: hidden, WaitTimeSeconds: patience,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
		MessageAttributeNames:       []string{string(types.QueueAttributeNameAll)},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// process deals with one message.
func (q *Queue) process(ctx context.Context, p parsed, claims map[string]*v1.NodeClaim) {
	logger, message := log.FromContext(ctx).WithValues("message-id", aws.ToString(p.MessageId)), p.says
	if p.err != nil {
		logger.Error(p.err, "deleting a message that cannot be read")
	} else {
		q.config.Metrics.received.WithLabelValues(string(message.Kind)).Inc()
		if err := q.handle(ctx, message, claims); err != nil {
			logger.Error(err, "message not dealt with, it will come again", "kind", message.Kind)
			return
		}
		if !message.At.IsZero() {
			q.config.Metrics.latency.Observe(q.config.Clock.Since(message.At).Seconds())
		}
	}
	if _, err := q.config.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: p.ReceiptHandle}); err != nil {
		logger.Error(err, "message not deleted, it will come again", "kind", message.Kind)
		return
	}
	q.config.Metrics.deleted.Inc()
}

func (q *Queue) handle(ctx context.Context, m Message, claims map[string]*v1.NodeClaim) error {
	var failures []error
	for _, id := range m.Instances {
		if claim := claims[id]; claim != nil {
			failures = append(failures, q.act(ctx, m.Kind, claim))
		}
	}
	return errors.Join(failures...)
}

// act does what the kind of message asks for.
func (q *Queue) act(ctx context.Context, kind Kind, claim *v1.NodeClaim) error {
	q.config.Claims.Notify(ctx, claim, warnings()[kind])
	switch kind {
	case RebalanceRecommendation:
		if !q.config.MarkRebalance {
			return nil
		}
		return q.config.Claims.Recommend(ctx, claim, q.config.Clock.Now())
	case SpotInterrupted:
		o := shortage.Offering{
			CapacityType: model.Spot, InstanceType: claim.Labels[model.LabelInstanceType], Zone: claim.Labels[model.LabelZone],
		}
		if o.InstanceType != "" && o.Zone != "" {
			q.config.Shortages.Offering(o, q.config.Clock.Now())
		}
	case ReservationInterrupted:
		if id := claim.Labels[awsv1.CapacityReservationIDLabelKey]; id != "" {
			q.config.Shortages.Reservation(claim.Labels[model.LabelInstanceType], claim.Labels[model.LabelZone], id, q.config.Clock.Now())
		}
	}
	return end(ctx, q.config.Claims, claim, kind)
}

// warnings returns the Kubernetes events for the kinds of messages.
func warnings() map[Kind]nodeclaim.Event {
	const warning = corev1.EventTypeWarning
	return map[Kind]nodeclaim.Event{
		SpotInterrupted:         {Type: warning, Reason: "SpotInterrupted", Message: "Spot interruption warning was triggered"},
		RebalanceRecommendation: {Type: corev1.EventTypeNormal, Reason: "SpotRebalanceRecommendation", Message: "Spot rebalance recommendation was triggered"},
		ReservationInterrupted:  {Type: warning, Reason: "CapacityReservationInstanceInterrupted", Message: "Capacity Reservation interruption warning was triggered"},
		InstanceStopped:         {Type: warning, Reason: "InstanceStopping", Message: "Instance is stopping"},
		InstanceTerminated:      {Type: warning, Reason: "InstanceTerminating", Message: "Instance is terminating"},
		ScheduledChange:         unhealthy(),
	}
}

func unhealthy() nodeclaim.Event {
	return nodeclaim.Event{Type: corev1.EventTypeWarning, Reason: "InstanceUnhealthy", Message: "An unhealthy warning was triggered for the instance"}
}

// end deletes a claim and publishes why.
func end(ctx context.Context, c *nodeclaim.Claims, claim *v1.NodeClaim, kind Kind) error {
	deleted, err := c.Delete(ctx, claim, string(kind))
	if deleted {
		c.Notify(ctx, claim, nodeclaim.Event{
			Type: corev1.EventTypeWarning, Reason: "TerminatingOnInterruption",
			Message: "Interruption triggered termination for the NodeClaim", NodeMessage: "Interruption triggered termination for the Node",
		})
	}
	return err
}
