// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/cloud"
	"karpenter/model"
)

// Stopping is how long an instance takes to end once it is told to, unless
// SetStopping says otherwise.
const Stopping = 20 * time.Second

// soldOutFor is how long an offering that could not be launched is shown as
// unavailable.
const soldOutFor = 3 * time.Minute

// Offering names one way to launch an instance type.
type Offering struct{ Type, Zone, CapacityType string }

// Machine is one instance the cloud has started, whether or not it still runs.
type Machine struct {
	cloud.Machine
	Offering Offering
	Price    model.Price // when it was launched
	// Told is when it was told to end; zero = it was not.
	Told time.Time
	// Ended is when it stopped to run; zero = it runs.
	Ended time.Time
	// Lost instances ended without having been told to by the process.
	Lost bool
	// Drift is what the cloud answers when asked whether it has drifted.
	Drift string
	// Node is what it registers as; nil = what its labels and sizes say.
	Node *corev1.Node

	stops time.Time // zero = no one has told it to
}

// Runs reports whether the instance exists.
func (m *Machine) Runs() bool { return m.Ended.IsZero() }

// Cloud is where instances run. It is safe for concurrent use.
type Cloud struct {
	mu       sync.Mutex
	types    []*cloud.InstanceType
	machines []*Machine // in the order of their launch
	byUID    map[types.UID]*Machine
	empty    map[Offering]bool      // cannot be launched, and no one knows
	closed   map[Offering]bool      // is said to be unavailable
	soldOut  map[Offering]time.Time // shown as unavailable until then
	classes  map[string]string      // NodeClasses that are not ready, and why
	lag      time.Duration
	stopping time.Duration
	version  int64
	real     Real // nil = there is no other
}

// New returns a cloud that offers the types.
func New(sold []*cloud.InstanceType) *Cloud {
	return &Cloud{
		types: slices.Clone(sold), byUID: map[types.UID]*Machine{},
		empty: map[Offering]bool{}, closed: map[Offering]bool{}, soldOut: map[Offering]time.Time{}, classes: map[string]string{},
		stopping: Stopping,
	}
}

// Version rises with every change, also those that come with time.
func (c *Cloud) Version() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	return c.version
}

// Next is when something will change by itself; zero = nothing will.
func (c *Cloud) Next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	var next time.Time
	for _, m := range c.machines {
		if m.Runs() && !m.stops.IsZero() && (next.IsZero() || m.stops.Before(next)) {
			next = m.stops
		}
	}
	return next
}

// settle ends the instances whose time has come.
func (c *Cloud) settle() {
	for _, m := range c.machines {
		if m.Runs() && !m.stops.IsZero() && !time.Now().Before(m.stops) {
			m.Ended = m.stops
			c.version++
		}
	}
}

func (c *Cloud) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	do()
	c.version++
}

// Machines returns copies of all instances there ever were, in the order of
// their launch.
func (c *Cloud) Machines() []Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	out := make([]Machine, len(c.machines))
	for i, m := range c.machines {
		out[i] = *m
	}
	return out
}

// Find returns the instance with the provider ID, and false when there never
// was one.
func (c *Cloud) Find(providerID string) (Machine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if m := c.find(providerID); m != nil {
		return *m, true
	}
	return Machine{}, false
}

func (c *Cloud) find(providerID string) *Machine {
	for _, m := range c.machines {
		if m.ProviderID == providerID {
			return m
		}
	}
	return nil
}

// Lose ends an instance that no one has told to, as when the cloud takes a spot
// instance back.
func (c *Cloud) Lose(providerID string) {
	if c.real != nil {
		c.real.Lose(providerID)
		return
	}
	c.change(func() {
		if m := c.find(providerID); m != nil && m.Runs() {
			m.Ended, m.Lost = time.Now(), true
		}
	})
}

// SetDrift makes an instance one that its NodeClass does not ask for any more;
// "" takes that back.
func (c *Cloud) SetDrift(providerID, reason string) {
	c.change(func() {
		if m := c.find(providerID); m != nil {
			m.Drift = reason
		}
	})
}

// SetPrice changes the price of what it is asked from now on.
func (c *Cloud) SetPrice(o Offering, price model.Price) {
	if c.real != nil {
		c.real.SetPrice(o, price)
	}
	c.change(func() { c.alter(o, func(x *cloud.Offering) { x.Price = price }) })
}

// SetAvailable says to everyone whether an offering can be launched.
func (c *Cloud) SetAvailable(o Offering, available bool) {
	c.change(func() {
		c.closed[o] = !available
		c.alter(o, func(x *cloud.Offering) { x.Available = available })
	})
}

// SetEmpty makes launches of an offering fail that is shown as available. Who
// tries finds it unavailable for a while.
func (c *Cloud) SetEmpty(o Offering, empty bool) {
	if c.real != nil {
		c.real.SetEmpty(o, empty)
	}
	c.change(func() { c.empty[o] = empty })
}

// SetClassReady makes launches for a NodeClass fail unless why is "".
func (c *Cloud) SetClassReady(class, why string) {
	c.change(func() { c.classes[class] = why })
}

// SetLag makes instances invisible to Get and List for that long after their
// launch.
func (c *Cloud) SetLag(lag time.Duration) {
	if c.real != nil {
		c.real.SetLag(lag)
	}
	c.change(func() { c.lag = lag })
}

// SetStopping makes instances take that long to end once they are told to.
func (c *Cloud) SetStopping(d time.Duration) { c.change(func() { c.stopping = d }) }

// Types returns what is offered, as it is shown now.
func (c *Cloud) Types() []*cloud.InstanceType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.shown())
}

// alter replaces the type of the offering by one whose offering is another.
func (c *Cloud) alter(o Offering, change func(*cloud.Offering)) {
	for i, t := range c.types {
		if t.Name != o.Type {
			continue
		}
		next := *t
		next.Offerings = slices.Clone(t.Offerings)
		for j := range next.Offerings {
			if x := &next.Offerings[j]; x.Zone() == o.Zone && x.CapacityType() == o.CapacityType {
				change(x)
			}
		}
		c.types[i] = &next
	}
}

// shown returns the types with what is known to be sold out made unavailable.
// The slice and its types stay the same while nothing changes.
func (c *Cloud) shown() []*cloud.InstanceType {
	now := time.Now()
	for o, until := range c.soldOut {
		if now.Before(until) {
			continue
		}
		delete(c.soldOut, o)
		c.alter(o, func(x *cloud.Offering) { x.Available = !c.closed[o] })
	}
	return c.types
}

// sellOut shows the offering as unavailable for a while.
func (c *Cloud) sellOut(o Offering) {
	c.soldOut[o] = time.Now().Add(soldOutFor)
	c.alter(o, func(x *cloud.Offering) { x.Available = false })
}

func offeringOf(choice cloud.Choice) Offering {
	return Offering{choice.Type.Name, choice.Offering.Zone(), choice.Offering.CapacityType()}
}

func (c *Cloud) nextID(zone string) string {
	return fmt.Sprintf("sim:///%s/i-%04d", zone, len(c.machines)+1)
}
