// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"sync"
	"time"
)

// memoryTTL is how long it is remembered what nodes have.
const memoryTTL = 60 * 24 * time.Hour

// Memory remembers how much memory nodes have, by type and by image, because
// kernels reserve different amounts. The smallest of several nodes counts. Its
// zero value is empty and ready; it may be used concurrently.
type Memory struct {
	mu       sync.Mutex
	seen     map[memoryKey]sight
	next     time.Time // when the first sight is forgotten; zero = none is kept
	sequence uint64
}

type memoryKey struct{ instanceType, image string }

type sight struct {
	bytes int64
	until time.Time
}

// Saw records the memory in bytes of a node that runs the image.
func (m *Memory) Saw(instanceType, image string, bytes int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweepLocked(now)
	key := memoryKey{instanceType, image}
	known, ok := m.seen[key]
	if ok && known.bytes < bytes {
		return
	}
	if m.seen == nil {
		m.seen = map[memoryKey]sight{}
	}
	if !ok || known.bytes != bytes {
		m.sequence++
	}
	until := now.Add(memoryTTL)
	m.seen[key] = sight{bytes, until}
	if m.next.IsZero() {
		m.next = until
	}
}

// sweepLocked forgets what was seen too long ago.
func (m *Memory) sweepLocked(now time.Time) {
	if m.next.IsZero() || m.next.After(now) {
		return
	}
	m.next = time.Time{}
	for key, s := range m.seen {
		switch {
		case !s.until.After(now):
			delete(m.seen, key)
			m.sequence++
		case m.next.IsZero() || s.until.Before(m.next):
			m.next = s.until
		}
	}
}

// Bytes returns what the smallest such node had, or 0 when none was seen.
func (m *Memory) Bytes(instanceType, image string, now time.Time) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweepLocked(now)
	return m.seen[memoryKey{instanceType, image}].bytes
}

// Sequence returns a number that grows whenever an answer of Bytes becomes
// another.
func (m *Memory) Sequence(now time.Time) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweepLocked(now)
	return m.sequence
}
