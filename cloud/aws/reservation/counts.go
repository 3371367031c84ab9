// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"
	"sync"
	"time"
)

// lasting is how long EC2's word on what a reservation has left holds.
const lasting = 24 * time.Hour

// Counts is how many launches each reservation has left. Its zero value knows
// none; it may be used concurrently.
type Counts struct {
	mu    sync.Mutex
	known map[string]*count
}

type count struct {
	left     int64
	at       time.Time   // when EC2 was asked
	launches []time.Time // after that
}

// Left returns the launches left; none in a reservation that is not known.
func (c *Counts) Left(id string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[id]; ok {
		return max(0, known.left-int64(len(known.launches)))
	}
	return 0
}

// Synced records the counts that EC2 returned for a request at that time. They
// do not include launches since then.
func (c *Counts) Synced(id string, left int64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.known[id]
	if ok && at.Before(old.at) {
		return
	}
	if c.known == nil {
		c.known = map[string]*count{}
	}
	fresh := &count{left: left, at: at}
	if ok {
		fresh.launches = slices.DeleteFunc(old.launches, func(t time.Time) bool { return t.Before(at) })
	}
	c.known[id] = fresh
	for other, known := range c.known {
		if at.Sub(known.at) >= lasting {
			delete(c.known, other)
		}
	}
}

// Launched takes a launch off, unless EC2 was asked after it.
func (c *Counts) Launched(id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[id]; ok && !known.at.After(at) && known.left > int64(len(known.launches)) {
		known.launches = append(known.launches, at)
	}
}

// Ended gives back what an instance that is gone had.
func (c *Counts) Ended(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[id]; ok {
		known.left++
	}
}

// Exhausted notes that EC2 had nothing left.
func (c *Counts) Exhausted(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known[id]; ok {
		known.left, known.launches = 0, nil
	}
}
