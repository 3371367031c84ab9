// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sightings remembers, per object, when something about it was first seen. API timestamps have whole seconds only, too
// coarse for the delays simulated here. Safe for concurrent use.
type sightings[T any] struct {
	mu   sync.Mutex
	seen map[types.UID]*T
}

func newSightings[T any]() *sightings[T] { return &sightings[T]{seen: map[types.UID]*T{}} }

// observe lets update change the object's sight, which is zero if new.
func (s *sightings[T]) observe(uid types.UID, update func(sight *T, isNew bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sight, known := s.seen[uid]
	if !known {
		sight = new(T)
		s.seen[uid] = sight
	}
	update(sight, !known)
}

// get returns the object's sight and whether there is one.
func (s *sightings[T]) get(uid types.UID) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sight, ok := s.seen[uid]; ok {
		return *sight, true
	}
	var none T
	return none, false
}

func (s *sightings[T]) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, uid)
}

// nodeSight is what is remembered of a node.
type nodeSight struct {
	first time.Time
}

// podSight is what is remembered of a pod; zero times have not come yet.
type podSight struct {
	bound    time.Time
	running  time.Time
	deleting time.Time
}

// update notes what is new about the pod. Of a pod that was running or deleted before it was first seen, as after this
// process was restarted, the pod's own times are taken.
func (s *podSight) update(pod *corev1.Pod, isNew bool, now time.Time) {
	if isNew {
		s.bound = now
	}
	if s.running.IsZero() && pod.Status.Phase == corev1.PodRunning {
		s.running = now
		if isNew && pod.Status.StartTime != nil {
			s.running = pod.Status.StartTime.Time
		}
	}
	if s.deleting.IsZero() && pod.DeletionTimestamp != nil {
		s.deleting = now
		if isNew {
			s.deleting = pod.DeletionTimestamp.Add(-gracePeriod(pod))
		}
	}
}

// gracePeriod returns the grace granted by a pod's deletion.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}
