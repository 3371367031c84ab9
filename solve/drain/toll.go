// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"karpenter/model"
)

// A move has a price. Moving all pods of a NodePool once costs as much as the
// pool costs in an hour, and each node has its share in that: by what its pods
// say about being moved, how long they take to start, and 1 for itself. A launch
// costs extra. What a command saves must pay for all of it within the payback time, or
// sooner if its pods usually end sooner.
// So the rule knows no amounts: it is the same for large clusters
// and small ones, and for prices in any currency. The policy Balanced of a NodePool
// is the same comparison with two hours, on what its pods say alone (balance.go), and
// stands in for it.

const (
	// slowStart is how long a pod starts that costs twice as much to move as one
	// that is ready at once.
	slowStart = 5 * time.Minute
	// launchTime is how long a new node costs money before it is of use, and the
	// nodes it replaces while their pods leave.
	launchTime = 10 * time.Minute
	// launchDisruption is what a launch costs besides, as if that many plain pods
	// were moved.
	launchDisruption = 1.0
)

// toll is what a command must save per hour, in nano-dollars, to be worth it.
type toll struct {
	moves  float64 // for its pods
	launch float64 // for each launch
	new    float64 // for launches, however many
	share  float64 // the least a replacement must save
	weight float64 // what moving its pods costs once

	lasts time.Duration // how long it saves at most, if that is less than the payback time; 0 = longer
}

// of returns what must be saved for so many launches.
func (t toll) of(launches int) float64 {
	if launches == 0 {
		return t.moves
	}
	return t.moves + t.new + float64(launches)*t.launch
}

// least is of, or the least a replacement must save.
func (t toll) least(launches int) float64 {
	if launches == 0 {
		return t.moves
	}
	return max(t.of(launches), t.share)
}

// shortest is the least time in which a command is taken to save anything.
const shortest = time.Minute

// clock is the time that decisions go by. It moves in steps, so that an unchanged
// cluster need not be decided again all the time.
func clock(s *model.Snapshot) time.Time { return s.Now.Truncate(shortest) }

// SameTime reports whether two Snapshots that differ in nothing but Now are decided in
// the same way.
func SameTime(a, b *model.Snapshot) bool {
	if clock(a).Equal(clock(b)) {
		return true
	}
	for i := range b.Nodes {
		if !b.Nodes[i].Disruption.PodsEnd.IsZero() {
			return false
		}
	}
	return true
}

// lasts returns for how long at most removing the node saves what it costs, if that is
// known: when its pods have ended, it would go as empty. But a node that has been there
// for longer gets new pods when others end, and is expected to stay as long again.
func lasts(n *model.Node, now time.Time) (time.Duration, bool) {
	d := &n.Disruption
	if d.PodsEnd.IsZero() {
		return 0, false
	}
	out := max(d.PodsEnd.Sub(now), shortest)
	if !d.Since.IsZero() {
		out = max(out, now.Sub(d.Since))
	}
	return out, true
}

// burden is what taking the node away disrupts.
func burden(n *model.Node) float64 {
	return n.Disruption.Cost + n.Disruption.Startup.Seconds()/slowStart.Seconds()
}
