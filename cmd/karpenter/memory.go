// SPDX-License-Identifier: Apache-2.0

//go:build !nocontroller

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// startTime is how long the process counts as starting: it reads the whole
	// cluster, and most of what that takes is garbage at once.
	startTime = 5 * time.Minute

	// How much garbage there may be until it is collected, in percent of what is in
	// use.
	startingPercent = 25
	usualPercent    = 50
)

// collectSooner makes the garbage collector run when garbage reaches this
// percentage of the memory in use, instead of 100. Memory in use is mostly
// caches, and decisions and scrapes need only a part of that in addition. So
// the process needs about half the memory, and a collection takes a fraction of
// a second. GOGC overrides this.
func collectSooner(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// giveBack returns unused memory to the system every minute, and ends the settings
// of the garbage collector for the start. Without it, the process would keep the
// memory that it needed to read the whole cluster.
type giveBack struct{}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that
// waits gives back, too.
func (giveBack) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (giveBack) Start(ctx context.Context) error {
	every, started := time.NewTicker(time.Minute), time.NewTimer(startTime)
	defer every.Stop()
	defer started.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-started.C:
			collectSooner(usualPercent)
		case <-every.C:
			shrink()
		}
	}
}

// shrink gives memory back if there is enough of it to be worth a collection.
func shrink() {
	if free, live := heap(); free > live/4 {
		debug.FreeOSMemory()
	}
}

// heap returns how many bytes of the heap are free and kept, and how many were in
// use when garbage was collected last.
func heap() (free, live uint64) {
	read := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(read)
	return read[0].Value.Uint64(), read[1].Value.Uint64()
}
