// SPDX-License-Identifier: Apache-2.0

// Package eventstest has an events.Recorder for tests.
package eventstest

import (
	"slices"
	"sync"

	"karpenter/kube/events"
)

// Recorder keeps every event, repetitions included. The zero value is ready
// to use; it is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	events []events.Event
}

// Publish keeps the events.
func (r *Recorder) Publish(e ...events.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e...)
}

// Events returns a copy of what was published so far, oldest first.
func (r *Recorder) Events() []events.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Of returns the events with the reason, oldest first.
func (r *Recorder) Of(reason string) []events.Event {
	return slices.DeleteFunc(r.Events(), func(e events.Event) bool { return e.Reason != reason })
}

// Reset forgets everything.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}
