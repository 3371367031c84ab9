// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go/middleware"
	"k8s.io/utils/clock"
)

// Ledger records the result of the latest call of each AWS operation. It is
// safe for concurrent use.
type Ledger struct {
	Clock clock.PassiveClock // required

	mu    sync.Mutex
	calls map[string]Outcome // by Action
}

// Outcome is how the calls of one operation end.
type Outcome struct {
	Action   string    // as in an IAM policy: ec2:CreateFleet
	Answered time.Time // the latest answer that was no failure; zero = none
	Failing  time.Time // the first of the latest failures that no answer has followed; zero = it does not fail
	Code     string    // of the latest failure; "" = AWS did not answer
	Refused  bool      // the latest failure says that a permission is missing
}

// Extend is an extension for Connect.
func (l *Ledger) Extend(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KarpenterLedger",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			if ctx.Err() == nil {
				l.note(action(middleware.GetServiceID(ctx), middleware.GetOperationName(ctx)), err)
			}
			return out, metadata, err
		}), middleware.After)
}

// action returns the name of an operation in IAM policies.
func action(service, operation string) string {
	return strings.ReplaceAll(strings.ToLower(service), " ", "-") + ":" + operation
}

func (l *Ledger) note(action string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, was := l.Clock.Now(), l.calls[action]
	is := Outcome{Action: action, Answered: was.Answered}
	if err == nil {
		is.Answered = now
	} else {
		is.Failing, is.Code, is.Refused = was.Failing, Code(err), Unauthorized(err)
		if is.Failing.IsZero() {
			is.Failing = now
		}
	}
	if l.calls == nil {
		l.calls = map[string]Outcome{}
	}
	l.calls[action] = is
}

// Outcomes returns the operations that were called, by their actions.
func (l *Ledger) Outcomes() []Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Outcome
	for _, o := range l.calls {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Outcome) int { return cmp.Compare(a.Action, b.Action) })
	return out
}
