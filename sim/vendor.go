// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"maps"
	"sync"

	"karpenter/cmd/karpenter/wiring"
)

// Vendor is a cloud with a provider of its own, for which the Run's Cloud
// stands: see simcloud.Cloud.Stand.
type Vendor interface {
	// Provider makes the provider of one life of the process. Every call it
	// makes to the cloud goes through the door.
	Provider(context.Context, Door, wiring.Supplies) (wiring.Provider, error)
	// Look has the Run's Cloud show what there is now. It is called after every
	// step.
	Look() error
}

// Door lets a call of the process through when its turn has come, and may have
// it fail. Verb and name are those of the Call; input is the rest of what it asks, as
// JSON can tell it; writes says that it changes something.
type Door func(ctx context.Context, verb, name string, input any, writes bool, do func() error) error

// Calls counts those of the process to a Vendor. The zero value is ready, and safe for
// concurrent use.
type Calls struct {
	mu      sync.Mutex
	made    map[string]int
	changes int
}

// Count counts a call.
func (c *Calls) Count(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]int{}
	}
	c.made[verb]++
}

// Made returns how often each operation was called.
func (c *Calls) Made() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.made)
}

// Changed counts a call that has changed something.
func (c *Calls) Changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
}

// Changes returns how many calls have changed something.
func (c *Calls) Changes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}
