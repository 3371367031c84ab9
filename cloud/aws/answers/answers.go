// SPDX-License-Identifier: Apache-2.0

// Package answers caches answers from AWS for a while. Equal questions at the
// same time become one call.
package answers

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Cache remembers answers by question. Failures are not remembered. It may be
// used concurrently; no lock is held while AWS is asked.
type Cache[Q comparable, A any] struct {
	clock clock.PassiveClock
	ttl   time.Duration

	mu    sync.Mutex
	asked map[Q]*answer[A]
}

// answer is an answer from AWS, or the wait for one: done is closed when the
// answer has arrived.
type answer[A any] struct {
	done  chan struct{}
	at    time.Time // when the question was put
	value A
	err   error
}

// New returns an empty cache whose answers hold for ttl.
func New[Q comparable, A any](clock clock.PassiveClock, ttl time.Duration) *Cache[Q, A] {
	return &Cache[Q, A]{clock: clock, ttl: ttl, asked: map[Q]*answer[A]{}}
}

// Get returns the answer that is remembered, or else asks. The answer is shared
// and must not be changed.
func (c *Cache[Q, A]) Get(ctx context.Context, question Q, ask func(context.Context) (A, error)) (A, error) {
	for {
		a, mine := c.open(question)
		if mine {
			c.fill(ctx, question, a, ask)
			return a.value, a.err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			var none A
			return none, ctx.Err()
		}
		// The first caller may have cancelled its context, which must not
		// affect other callers.
		if !errors.Is(a.err, context.Canceled) || ctx.Err() != nil {
			return a.value, a.err
		}
	}
}

// Put remembers an answer that came by other ways.
func (c *Cache[Q, A]) Put(question Q, value A) {
	done := make(chan struct{})
	close(done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[question] = &answer[A]{done: done, at: c.clock.Now(), value: value}
}

// Forget drops the answer, so that the next Get asks again.
func (c *Cache[Q, A]) Forget(question Q) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, question)
}

// open returns the answer to the question. If mine is true, the caller must
// fill it.
func (c *Cache[Q, A]) open(question Q) (a *answer[A], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if a = c.asked[question]; a != nil && (!a.settled() || now.Sub(a.at) < c.ttl) {
		return a, false
	}
	for q, old := range c.asked {
		if old.settled() && now.Sub(old.at) >= c.ttl {
			delete(c.asked, q)
		}
	}
	a = &answer[A]{done: make(chan struct{}), at: now}
	c.asked[question] = a
	return a, true
}

func (a *answer[A]) settled() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// fill asks for the answer. If that panics, other callers can ask again.
func (c *Cache[Q, A]) fill(ctx context.Context, question Q, a *answer[A], ask func(context.Context) (A, error)) {
	a.err = context.Canceled
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if a.err != nil && c.asked[question] == a {
			delete(c.asked, question)
		}
		close(a.done)
	}()
	a.value, a.err = ask(ctx)
}
