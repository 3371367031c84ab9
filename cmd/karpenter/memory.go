// SPDX-License-Identifier: Apache-2.0

//go:build !nocontroller

package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// collectSooner has garbage collected when there is half as much as there is in
// use, not as much. What is in use is mostly caches, of which a decision or a
// scrape needs a part besides: that halves what it costs in memory, and a
// collection takes a fraction of a second. GOGC says otherwise.
func collectSooner() {
	const preset, sooner = 100, 50
	if told := debug.SetGCPercent(sooner); told != preset {
		debug.SetGCPercent(told)
	}
}

// giveBack returns memory that is not in use to the system, every minute. Without
// it a process keeps for a long time what it needed once, when it read the whole
// cluster.
type giveBack struct{}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that
// waits gives back, too.
func (giveBack) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (giveBack) Start(ctx context.Context) error {
	every := time.NewTicker(time.Minute)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
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
