// SPDX-License-Identifier: Apache-2.0

package events

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// Source is the component named in the cluster's events.
const Source = "karpenter"

// sweepEvery is how often memories of expired events are dropped.
const sweepEvery = time.Minute

// Sink writes one event to the cluster. client-go's record.EventRecorder is
// one.
type Sink interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// Publisher is the Recorder that writes to a Sink.
type Publisher struct {
	sink  Sink
	clock clock.PassiveClock

	mu       sync.Mutex
	until    map[string]time.Time // end of the time in which equal events are dropped
	limiters map[string]*rate.Limiter
	swept    time.Time
}

// NewPublisher returns a Publisher that writes to sink.
func NewPublisher(sink Sink, clock clock.PassiveClock) *Publisher {
	return &Publisher{
		sink:     sink,
		clock:    clock,
		until:    map[string]time.Time{},
		limiters: map[string]*rate.Limiter{},
		swept:    clock.Now(),
	}
}

// Publish writes those events that are neither repetitions nor over their
// limit.
func (p *Publisher) Publish(events ...Event) {
	for _, e := range events {
		if p.admit(e) {
			p.sink.Event(e.Object, e.Type, e.Reason, e.Message)
		}
	}
}

// admit reports whether to write e, and remembers it if so. An event that
// exceeds its limit is not remembered, so a later one can be written.
func (p *Publisher) admit(e Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.sweepLocked(now)
	key := identity(e)
	if now.Before(p.until[key]) {
		return false
	}
	if !p.withinLimitLocked(e, now) {
		return false
	}
	timeout := e.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	p.until[key] = now.Add(timeout)
	return true
}

func (p *Publisher) withinLimitLocked(e Event, now time.Time) bool {
	if e.Limit == (Limit{}) {
		return true
	}
	l, ok := p.limiters[e.Reason]
	if !ok {
		l = rate.NewLimiter(rate.Limit(e.Limit.PerSecond), e.Limit.Burst)
		p.limiters[e.Reason] = l
	}
	return l.AllowN(now, 1)
}

func (p *Publisher) sweepLocked(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for key, until := range p.until {
		if !now.Before(until) {
			delete(p.until, key)
		}
	}
}

func identity(e Event) string {
	values := e.Dedupe
	if len(values) == 0 {
		values = []string{string(e.Object.GetUID())}
	}
	return strings.ToLower(e.Reason) + "\x00" + strings.Join(values, "\x00")
}
