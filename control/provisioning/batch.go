// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"sync"
	"time"
)

// Window is how long to wait for more pods. It ends Idle after the latest new
// trigger, and at most Most after the first trigger.
type Window struct{ Idle, Most time.Duration }

// batch is the triggers of one window. Safe for concurrent use.
type batch struct {
	window Window

	mu            sync.Mutex
	uids          map[string]struct{}
	first, latest time.Time
}

// add enters a trigger and reports whether it is the first. One that is in the
// batch already, or comes when the window has ended, changes nothing.
func (b *batch) add(uid string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.uids) == 0 {
		b.uids = map[string]struct{}{uid: {}}
		b.first, b.latest = now, now
		return true
	}
	if _, known := b.uids[uid]; !known && now.Before(b.endLocked()) {
		b.uids[uid] = struct{}{}
		b.latest = now
	}
	return false
}

// end returns when the window ends, and false when nothing was added.
func (b *batch) end() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endLocked(), len(b.uids) > 0
}

func (b *batch) endLocked() time.Time {
	idle, most := b.latest.Add(b.window.Idle), b.first.Add(b.window.Most)
	if idle.Before(most) {
		return idle
	}
	return most
}

// clear starts a new window.
func (b *batch) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uids = nil
}
