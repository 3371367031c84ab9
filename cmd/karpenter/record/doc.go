// SPDX-License-Identifier: Apache-2.0

// Package record keeps what Karpenter decided, what then happened, and what it cost,
// in a bounded record in the cluster.
//
//	Decision  what a plan did: launches, or nodes that are removed, with the cost predicted
//	Outcome   the result: nodes, actual cost, evictions, waits
//	Meter     what instances have cost so far, and the figures that savings are made of
//	Baseline  the figures of a Meter that a user froze; Since says what was saved since then
//	Recorder  the controller that writes the record; Read reads it
//
// The record is a ring of Slots ConfigMaps. Each holds a segment: lines of JSON, which
// are only ever added, compressed with zstd; and the Meter of the time it was written.
// A flush updates one ConfigMap, so that lines and Meter change together or not at all.
// A segment that is full is left alone, and the next takes the place of the oldest.
//
// A new leader continues the newest segment. A leader that lost its lease without
// knowing fails to write, because the ConfigMap has another resourceVersion. At
// most the lines that were not flushed yet are lost: see leastBetween and
// mostBetween.
package record
