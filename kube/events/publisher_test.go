// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/kube/events"
	"karpenter/kube/events/eventstest"
)

var _ events.Recorder = (*eventstest.Recorder)(nil)

type sink struct {
	mu      sync.Mutex
	written []string
}

func (s *sink) Event(o runtime.Object, eventType, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, fmt.Sprintf("%s %s %s: %s", o.(*corev1.Pod).Name, eventType, reason, message))
}

func pod(namespace, name, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
}

func nominated(uid string) events.Event {
	return events.Event{Object: pod("default", "p"+uid, uid), Type: corev1.EventTypeNormal, Reason: "Nominated", Limit: events.Limit{PerSecond: 5, Burst: 10}}
}

func TestPublish(t *testing.T) {
	one := events.Event{Object: pod("a", "p", "1"), Type: corev1.EventTypeWarning, Reason: "FailedScheduling", Message: "no room"}
	with := func(change func(*events.Event)) events.Event {
		e := one
		change(&e)
		return e
	}
	repeat := func(n int, e events.Event) []events.Event {
		var all []events.Event
		for range n {
			all = append(all, e)
		}
		return all
	}
	nominations := func(n int) []events.Event {
		var all []events.Event
		for i := range n {
			all = append(all, nominated(fmt.Sprint(i)))
		}
		return all
	}
	tests := []struct {
		name   string
		events []events.Event
		gap    time.Duration // between two events
		want   int
	}{
		{"spec 50/9 identical events", repeat(100, one), 0, 1},
		{"spec 50/9 default timeout", repeat(3, one), time.Minute, 2},
		{"spec 50/9 own timeout expired", repeat(2, with(func(e *events.Event) { e.Timeout = 2 * time.Second })), 3 * time.Second, 2},
		{"spec 50/9 own timeout running", repeat(2, with(func(e *events.Event) { e.Timeout = 5 * time.Second })), 3 * time.Second, 1},
		{"spec 50/9 different entities", []events.Event{one, with(func(e *events.Event) { e.Object = pod("a", "p2", "2") })}, 0, 2},
		{"spec 50/9 nominations at once", nominations(100), 0, 10},
		{"spec 50/9 five nominations a second over 3 s", nominations(15), 200 * time.Millisecond, 15},
		{"same name in two namespaces", []events.Event{one, with(func(e *events.Event) { e.Object = pod("b", "p", "2") })}, 0, 2},
		{"reason differs in case only", []events.Event{one, with(func(e *events.Event) { e.Reason = "failedscheduling" })}, 0, 1},
		{"message does not count", []events.Event{one, with(func(e *events.Event) { e.Message = "other" })}, 0, 1},
		{"dedupe values count", []events.Event{one, with(func(e *events.Event) { e.Dedupe = []string{"1", "x"} })}, 0, 2},
		{"dedupe values are not run together", []events.Event{
			with(func(e *events.Event) { e.Dedupe = []string{"ab", "c"} }),
			with(func(e *events.Event) { e.Dedupe = []string{"a", "bc"} }),
		}, 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
			s := &sink{}
			p := events.NewPublisher(s, clock)
			for _, e := range tt.events {
				p.Publish(e)
				clock.Step(tt.gap)
			}
			if len(s.written) != tt.want {
				t.Errorf("wrote %d events, want %d: %q", len(s.written), tt.want, s.written)
			}
		})
	}
}

func TestPublishWritesEverythingOfTheEvent(t *testing.T) {
	s := &sink{}
	p := events.NewPublisher(s, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	p.Publish(events.Event{Object: pod("a", "web", "1"), Type: corev1.EventTypeWarning, Reason: "FailedScheduling", Message: "no room"})
	if got, want := fmt.Sprint(s.written), "[web Warning FailedScheduling: no room]"; got != want {
		t.Errorf("wrote %s, want %s", got, want)
	}
}

func TestEventDroppedByLimitCanBePublishedLater(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	s := &sink{}
	p := events.NewPublisher(s, clock)
	for i := range 11 {
		p.Publish(nominated(fmt.Sprint(i)))
	}
	clock.Step(time.Second)
	p.Publish(nominated("10"))
	if len(s.written) != 11 {
		t.Errorf("wrote %d events, want 11: the eleventh was dropped, not seen", len(s.written))
	}
}

func TestPublishConcurrently(t *testing.T) {
	s := &sink{}
	p := events.NewPublisher(s, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			p.Publish(events.Event{Object: pod("a", "p", fmt.Sprint(i%10)), Reason: "Evicted"})
		})
	}
	wg.Wait()
	if len(s.written) != 10 {
		t.Errorf("wrote %d events, want 10", len(s.written))
	}
}
