// SPDX-License-Identifier: Apache-2.0

// Package shortage remembers for a while what Azure could not deliver, so that the
// next launch asks for something else.
//
// A shortage of a size counts for all sizes of its quota family with at least as
// many vCPUs, in the same zone and of the same capacity type. All spot capacity can
// be short at once, by a quota.
//
// Whoever keeps answers that depend on shortages compares sequence numbers: as
// long as Sequence stays the same, no answer has changed.
package shortage

import (
	"strings"
	"sync"
	"time"

	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// scope is where a size is short.
type scope struct {
	family       string // of quotas, in lower case; the name of a size without one
	zone         string // label
	capacityType string
}

// Log remembers shortages. Its zero value is empty and ready; it may be used
// concurrently.
type Log struct {
	mu       sync.Mutex
	sizes    map[scope]map[int64]time.Time // until when, by the least number of vCPUs
	spot     time.Time                     // until when no spot can be had
	next     time.Time                     // when the first of them is over; zero = nothing is short
	sequence uint64
}

func scopeOf(sku *azurevm.SKU, zone, capacityType string) scope {
	family := strings.ToLower(sku.Family)
	if family == "" {
		family = sku.Name
	}
	return scope{family, zone, capacityType}
}

// Size notes that the size is short in the zone until then. A shortage that is
// known to last longer is not cut short.
func (l *Log) Size(sku *azurevm.SKU, zone, capacityType string, until, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	if l.sizes == nil {
		l.sizes = map[scope]map[int64]time.Time{}
	}
	at := scopeOf(sku, zone, capacityType)
	if l.sizes[at] == nil {
		l.sizes[at] = map[int64]time.Time{}
	}
	if until.After(l.sizes[at][sku.VCPUs]) {
		l.sizes[at][sku.VCPUs] = until
	}
	l.notedLocked(until)
}

// Spot notes that no spot capacity can be had until then.
func (l *Log) Spot(until, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	if until.After(l.spot) {
		l.spot = until
	}
	l.notedLocked(until)
}

func (l *Log) notedLocked(until time.Time) {
	l.sequence++
	if l.next.IsZero() || until.Before(l.next) {
		l.next = until
	}
}

// Short reports whether a launch of the size is not worth trying.
func (l *Log) Short(sku *azurevm.SKU, zone, capacityType string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if capacityType == model.Spot && l.spot.After(now) {
		return true
	}
	for vCPUs, until := range l.sizes[scopeOf(sku, zone, capacityType)] {
		if vCPUs <= sku.VCPUs && until.After(now) {
			return true
		}
	}
	return false
}

// Sequence returns a number that grows whenever an answer of Short may have become
// another, be it that a shortage was noted or that one is over.
func (l *Log) Sequence(now time.Time) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked(now)
	return l.sequence
}

// sweepLocked forgets what is over.
func (l *Log) sweepLocked(now time.Time) {
	if l.next.IsZero() || l.next.After(now) {
		return
	}
	l.sequence++
	l.next = time.Time{}
	keep := func(until time.Time) bool {
		if !until.After(now) {
			return false
		}
		if l.next.IsZero() || until.Before(l.next) {
			l.next = until
		}
		return true
	}
	if !keep(l.spot) {
		l.spot = time.Time{}
	}
	for at, sizes := range l.sizes {
		for vCPUs, until := range sizes {
			if !keep(until) {
				delete(sizes, vCPUs)
			}
		}
		if len(sizes) == 0 {
			delete(l.sizes, at)
		}
	}
}
