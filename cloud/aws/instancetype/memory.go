package instancetype

import (
	"sync"
	"time"
)

// memoryTTL is how long it is remembered what nodes have.
const memoryTTL = 60 * 24 * time.Hour

// Memory remembers how much memory nodes have, by type and by images: kernels
// differ in what they keep. Of several nodes the smallest counts. Its zero value
// is empty and ready; it may be used concurrently.
type Memory struct {
	mu   sync.Mutex
	seen map[memoryKey]sight
}

type memoryKey struct{ instanceType, images string }

type sight struct {
	bytes int64
	until time.Time
}

// Saw takes note of a node's memory in bytes. Images stands for the class's
// images, one of which the node must run.
func (m *Memory) Saw(instanceType, images string, bytes int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := memoryKey{instanceType, images}
	if known, ok := m.seen[key]; ok && known.until.After(now) && known.bytes < bytes {
		return
	}
	if m.seen == nil {
		m.seen = map[memoryKey]sight{}
	}
	m.seen[key] = sight{bytes, now.Add(memoryTTL)}
}

// Bytes returns what the smallest such node had, or 0 when none was seen.
func (m *Memory) Bytes(instanceType, images string, now time.Time) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.seen[memoryKey{instanceType, images}]
	if !ok || !known.until.After(now) {
		return 0
	}
	return known.bytes
}
