// SPDX-License-Identifier: Apache-2.0

// Package shortage remembers for a while what EC2 could not deliver, so that the
// next launch asks for something else.
//
// Three things can be short: an offering (a type in a zone with a capacity
// type, perhaps within a placement group), a whole capacity type, and the
// addresses of a subnet. Each shortage is forgotten three minutes after it was
// last found. EC2 does not announce when capacity is back, so launches have to
// try.
//
// Code that caches answers that depend on shortages compares sequence numbers:
// as long as Sequence stays the same no answer has changed, and as long as
// SequenceOf does none about that type.
package shortage

import (
	"slices"
	"sync"
	"time"

	"karpenter/model"
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
	Reservation  string // ID of the capacity reservation; "" = not reserved
}

// Log remembers shortages. Its zero value is empty and ready; it may be used
// concurrently.
type Log struct {
	mu            sync.Mutex
	offerings     map[Offering]time.Time // until when
	capacityTypes map[string]time.Time
	subnets       map[string]time.Time

	next       time.Time         // when the first of them is over; zero = nothing is short
	sequence   uint64            // grows with every change
	everything uint64            // its value when answers about all types changed
	ofType     map[string]uint64 // and about one type
}

// Offering notes that the offering was out of capacity. Within a placement group it may
// be out of capacity alone: the same type and zone stay open outside of it, and with a
// partition in the other partitions.
func (l *Log) Offering(o Offering, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	if l.offerings == nil {
		l.offerings = map[Offering]time.Time{}
	}
	if _, known := l.offerings[o]; !known {
		l.changedLocked(o.InstanceType)
	}
	l.offerings[o] = l.untilLocked(now)
}

// CapacityType records that nothing of the capacity type can be launched.
func (l *Log) CapacityType(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	l.capacityTypes = l.noteLocked(l.capacityTypes, name, now)
}

// Subnet notes that the subnet has no free addresses.
func (l *Log) Subnet(id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	l.subnets = l.noteLocked(l.subnets, id, now)
}

// noteLocked adds what concerns all types.
func (l *Log) noteLocked(until map[string]time.Time, key string, now time.Time) map[string]time.Time {
	if until == nil {
		until = map[string]time.Time{}
	}
	if _, known := until[key]; !known {
		l.changedLocked("")
	}
	until[key] = l.untilLocked(now)
	return until
}

func (l *Log) untilLocked(now time.Time) time.Time {
	until := now.Add(Lasting)
	if l.next.IsZero() || until.Before(l.next) {
		l.next = until
	}
	return until
}

// changedLocked counts a change of the answers about the type; "" means all.
func (l *Log) changedLocked(instanceType string) {
	l.sequence++
	if instanceType == "" {
		l.everything = l.sequence
		return
	}
	if l.ofType == nil {
		l.ofType = map[string]uint64{}
	}
	l.ofType[instanceType] = l.sequence
}

// sweepLocked forgets what is over.
func (l *Log) sweepLocked(now time.Time) {
	if l.next.IsZero() || l.next.After(now) {
		return
	}
	l.next = time.Time{}
	for o, until := range l.offerings {
		if l.overLocked(until, now) {
			delete(l.offerings, o)
			l.changedLocked(o.InstanceType)
		}
	}
	for _, entries := range []map[string]time.Time{l.capacityTypes, l.subnets} {
		for key, until := range entries {
			if l.overLocked(until, now) {
				delete(entries, key)
				l.changedLocked("")
			}
		}
	}
}

func (l *Log) overLocked(until, now time.Time) bool {
	if !until.After(now) {
		return true
	}
	if l.next.IsZero() || until.Before(l.next) {
		l.next = until
	}
	return false
}

// Sequence returns a number that grows whenever an answer of SoldOut may have
// become another, be it that something was noted or that it is over.
func (l *Log) Sequence(now time.Time) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	return l.sequence
}

// SequenceOf returns the Sequence at which an answer about the type last may
// have become another.
func (l *Log) SequenceOf(instanceType string, now time.Time) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	return max(l.everything, l.ofType[instanceType])
}

// ReservationShort reports whether EC2 had no capacity for the type in the
// reservation, whatever the reservation's count says.
func (l *Log) ReservationShort(instanceType, zone, reservation string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offerings[reserved(instanceType, zone, reservation)].After(now)
}

// Reservation notes that EC2 had no capacity for the type in the reservation.
// Other reservations of the type and zone are not affected.
func (l *Log) Reservation(instanceType, zone, reservation string, now time.Time) {
	l.Offering(reserved(instanceType, zone, reservation), now)
}

func reserved(instanceType, zone, reservation string) Offering {
	return Offering{CapacityType: model.Reserved, InstanceType: instanceType, Zone: zone, Reservation: reservation}
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
	l.offerings, l.capacityTypes, l.subnets, l.next = nil, nil, nil, time.Time{}
	l.changedLocked("")
}
