// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// sqsAPI is Simple Queue Service.
type sqsAPI struct{ a *AWS }

// queue is a standard queue. Messages are kept for five minutes, as the queue of
// Karpenter's CloudFormation template keeps them.
type queue struct {
	name     string
	messages []*message
	arrived  chan struct{} // closed and replaced when there is something new
}

type message struct {
	id, body string
	sent     time.Time
	hidden   time.Time // until when
	received int
	first    time.Time
	receipts []string // of all times it was received
}

const (
	retention         = 5 * time.Minute
	defaultVisibility = 30 * time.Second
)

// AddQueue adds a queue.
func (a *AWS) AddQueue(name string) { a.locked(func(time.Time) { a.addQueue(name) }) }

// RemoveQueue deletes a queue with its messages.
func (a *AWS) RemoveQueue(name string) { a.locked(func(time.Time) { delete(a.queues, name) }) }

// SendMessage puts a text into a queue.
func (a *AWS) SendMessage(queue, body string) error {
	err := fmt.Errorf("awsfake: there is no queue %q", queue)
	a.locked(func(now time.Time) {
		if q := a.queues[queue]; q != nil {
			a.send(q, body, now)
			err = nil
		}
	})
	return err
}

// Messages returns the texts of the messages in a queue, received or not.
func (a *AWS) Messages(queue string) []string {
	var out []string
	a.locked(func(now time.Time) {
		if q := a.queues[queue]; q != nil {
			q.expire(now)
			for _, m := range q.messages {
				out = append(out, m.body)
			}
		}
	})
	return out
}

func (a *AWS) addQueue(name string) {
	if a.queues[name] == nil {
		a.queues[name] = &queue{name: name, arrived: make(chan struct{})}
	}
}

func (a *AWS) send(q *queue, body string, at time.Time) {
	q.expire(at)
	q.messages = append(q.messages, &message{id: a.id("m"), body: body, sent: at})
	close(q.arrived)
	q.arrived = make(chan struct{})
}

// expire drops what was kept long enough; messages are in order of time.
func (q *queue) expire(now time.Time) {
	n := 0
	for n < len(q.messages) && now.Sub(q.messages[n].sent) > retention {
		n++
	}
	q.messages = q.messages[n:]
}

func (a *AWS) queueURL(name string) string {
	return fmt.Sprintf("https://sqs.%s.amazonaws.com/%s/%s", a.config.Region, a.config.Account, name)
}

// queueOf returns the queue of a URL, whose host does not matter.
func (a *AWS) queueOf(url *string) (*queue, error) {
	text := aws.ToString(url)
	for _, q := range a.queues {
		if suffix := "/" + a.config.Account + "/" + q.name; len(text) >= len(suffix) && text[len(text)-len(suffix):] == suffix {
			return q, nil
		}
	}
	return nil, noQueue()
}

func noQueue() error {
	return &types.QueueDoesNotExist{Message: aws.String("The specified queue does not exist."), ErrorCodeOverride: aws.String("AWS.SimpleQueueService.NonExistentQueue")}
}

// GetQueueUrl finds a queue by name.
func (s sqsAPI) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return answer(ctx, s.a, "GetQueueUrl", in, func(time.Time) (*sqs.GetQueueUrlOutput, error) {
		name := aws.ToString(in.QueueName)
		if s.a.queues[name] == nil {
			return nil, noQueue()
		}
		return &sqs.GetQueueUrlOutput{QueueUrl: aws.String(s.a.queueURL(name))}, nil
	})
}

// ReceiveMessage returns messages and hides them for a while. With a clock that
// can wait it waits for the first one as long as the call says.
func (s sqsAPI) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	var arrived <-chan struct{}
	var until time.Time
	out, err := answer(ctx, s.a, "ReceiveMessage", in, func(now time.Time) (*sqs.ReceiveMessageOutput, error) {
		if n := in.MaxNumberOfMessages; n < 0 || n > 10 {
			return nil, refuse("InvalidParameterValue", "Value %d for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.", n)
		}
		q, err := s.a.queueOf(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		arrived, until = q.arrived, now.Add(time.Duration(in.WaitTimeSeconds)*time.Second)
		return s.a.received(q, in, now), nil
	})
	for err == nil && len(out.Messages) == 0 && s.a.wait(ctx, arrived, until) {
		s.a.locked(func(now time.Time) {
			q, gone := s.a.queueOf(in.QueueUrl)
			if gone != nil {
				out, err = nil, failed("ReceiveMessage", gone)
				return
			}
			arrived, out = q.arrived, s.a.received(q, in, now)
		})
	}
	if err == nil && len(out.Messages) == 0 && ctx.Err() != nil {
		return nil, failed("ReceiveMessage", &smithy.CanceledError{Err: ctx.Err()})
	}
	return out, err
}

// wait waits until something may have changed, and reports whether there is time
// left or something arrived.
func (a *AWS) wait(ctx context.Context, arrived <-chan struct{}, until time.Time) bool {
	waiting, ok := a.clock.(interface {
		After(time.Duration) <-chan time.Time
	})
	now := a.clock.Now()
	if !ok || !now.Before(until) {
		return false
	}
	next := until
	a.locked(func(time.Time) {
		if a.pending.Len() > 0 && a.pending.list[0].at.Before(next) {
			next = a.pending.list[0].at
		}
	})
	select {
	case <-ctx.Done():
		return false
	case <-arrived:
	case <-waiting.After(max(0, next.Sub(now))):
	}
	return true
}

// received picks visible messages and hides them.
func (a *AWS) received(q *queue, in *sqs.ReceiveMessageInput, now time.Time) *sqs.ReceiveMessageOutput {
	q.expire(now)
	visibility := time.Duration(in.VisibilityTimeout) * time.Second
	if visibility == 0 {
		visibility = defaultVisibility
	}
	out := &sqs.ReceiveMessageOutput{}
	for _, m := range q.messages {
		if len(out.Messages) >= max(1, int(in.MaxNumberOfMessages)) {
			break
		}
		if m.hidden.After(now) {
			continue
		}
		if m.received++; m.received == 1 {
			m.first = now
		}
		m.hidden = now.Add(visibility)
		m.receipts = append(m.receipts, a.id("receipt"))
		sum := md5.Sum([]byte(m.body))
		out.Messages = append(out.Messages, types.Message{
			MessageId: aws.String(m.id), Body: aws.String(m.body), ReceiptHandle: aws.String(m.receipts[len(m.receipts)-1]), MD5OfBody: aws.String(hex.EncodeToString(sum[:])), Attributes: m.attributes(in),
		})
	}
	return out
}

// attributes are those that the call asks for.
func (m *message) attributes(in *sqs.ReceiveMessageInput) map[string]string {
	asked := texts(in.MessageSystemAttributeNames)
	for _, name := range in.AttributeNames {
		asked = append(asked, string(name))
	}
	out := map[string]string{}
	for name, value := range map[string]string{
		"SentTimestamp": milliseconds(m.sent), "ApproximateFirstReceiveTimestamp": milliseconds(m.first),
		"ApproximateReceiveCount": strconv.Itoa(m.received), "SenderId": "AIDAEVENTBRIDGE",
	} {
		if slices.Contains(asked, name) || slices.Contains(asked, "All") {
			out[name] = value
		}
	}
	return out
}

func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// DeleteMessage deletes the message that a receipt is of; an old receipt is
// fine, also of a message that is gone.
func (s sqsAPI) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return answer(ctx, s.a, "DeleteMessage", in, func(time.Time) (*sqs.DeleteMessageOutput, error) {
		q, err := s.a.queueOf(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		receipt := aws.ToString(in.ReceiptHandle)
		if len(receipt) < len("receipt-") || receipt[:len("receipt-")] != "receipt-" {
			return nil, &types.ReceiptHandleIsInvalid{Message: aws.String("The input receipt handle \"" + receipt + "\" is not a valid receipt handle.")}
		}
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return slices.Contains(m.receipts, receipt) })
		return &sqs.DeleteMessageOutput{}, nil
	})
}
