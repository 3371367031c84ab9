// Package shortage remembers for a while what EC2 could not deliver, so that the
// next launch asks for something else.
//
// Three things can be short: an offering (a type in a zone, bought in one way,
// perhaps within a placement group), a whole capacity type, and the addresses of
// a subnet. Each is forgotten three minutes after it was last found short; EC2
// says nothing when capacity comes back, so that has to be tried.
package shortage

import (
	"slices"
	"sync"
	"time"
)

// Lasting is how long a shortage is remembered.
const Lasting = 3 * time.Minute

// Offering is a way to buy an instance. Group and Partition are empty outside of
// placement groups.
type Offering struct {
	CapacityType string
	InstanceType string
	Zone         string
	Group        string // ID of the placement group
	Partition    string
}

// Log remembers shortages. Its zero value is empty and ready; it may be used
// concurrently.
type Log struct {
	mu            sync.Mutex
	offerings     map[Offering]time.Time // until when
	capacityTypes map[string]time.Time
	subnets       map[string]time.Time
}

// Offering notes that the offering was sold out. Within a placement group it may
// be sold out alone: the same type and zone stay open outside of it, and with a
// partition in the other partitions.
func (l *Log) Offering(o Offering, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offerings = noted(l.offerings, o, now)
}

// CapacityType notes that nothing of the capacity type can be bought.
func (l *Log) CapacityType(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.capacityTypes = noted(l.capacityTypes, name, now)
}

// Subnet notes that the subnet has no free addresses.
func (l *Log) Subnet(id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subnets = noted(l.subnets, id, now)
}

// noted returns the entries with one added, less those that are over.
func noted[K comparable](until map[K]time.Time, key K, now time.Time) map[K]time.Time {
	if until == nil {
		until = map[K]time.Time{}
	}
	for k, t := range until {
		if !t.After(now) {
			delete(until, k)
		}
	}
	until[key] = now.Add(Lasting)
	return until
}

// SoldOut reports whether a launch of the offering is not worth trying: it is
// short itself, in its whole placement group, or outside of any, or its capacity
// type is, or all of the subnets there are in its zone.
func (l *Log) SoldOut(o Offering, subnets []string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	inGroup, everywhere := o, o
	inGroup.Partition, everywhere.Partition, everywhere.Group = "", "", ""
	for _, key := range []Offering{o, inGroup, everywhere} {
		if l.offerings[key].After(now) {
			return true
		}
	}
	if l.capacityTypes[o.CapacityType].After(now) {
		return true
	}
	open := func(id string) bool { return !l.subnets[id].After(now) }
	return len(subnets) > 0 && !slices.ContainsFunc(subnets, open)
}

// SubnetShort reports whether the subnet has no free addresses.
func (l *Log) SubnetShort(id string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subnets[id].After(now)
}

// Clear forgets all.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offerings, l.capacityTypes, l.subnets = nil, nil, nil
}
