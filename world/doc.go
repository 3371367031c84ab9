// SPDX-License-Identifier: Apache-2.0

// Package world keeps what is known of the cluster and hands it out as
// immutable Snapshots.
//
// Events come in through Set and Delete methods, one pair per kind of object,
// with plain values; repeating an event changes nothing. What this process has
// decided itself, and the API does not show yet, comes in through Planned,
// Placed, Unplaced, Nominate and MarkForDeletion. Package world makes no calls and reads
// no clock, and it never waits for anything: an object that is not launched is
// capacity on its way, not a reason to stop.
//
// # Vocabulary
//
//   - Machine: one Node and the NodeClaim it was started for, joined by their
//     provider ID; either half may be missing. A claim that is not launched is
//     a machine by itself, and so is a Node no claim answers for.
//   - Host: the pods bound to a node name, whether or not there is a Node.
//   - PodGroup: pods that start together or not at all. (A group is something else:
//     the pods of one shape that no selector tells apart.)
//   - Plan: the machine an earlier decision chose for a pod: one that is not
//     bound, or that is to leave its node.
//
// # Invariants
//
//  1. What a machine has in use is summed up from the pods of its host, never
//     adjusted, so that no lost or repeated event can leave a trace.
//  2. A machine that is being removed counts towards no pool (towards limits it does
//     as long as the mark may be taken back), takes no pods, and
//     its pods that need a place elsewhere are pending.
//  3. A claim known only from Planned counts like any other. When no event
//     confirms it in time, it is Unconfirmed.
//  4. Snapshots share their parts. Nothing that was handed out is modified.
package world
