// SPDX-License-Identifier: Apache-2.0

// Package provisioning finds a place for pods that have none: it carries out
// the Placements and Launches of a Plan and tells why the pods of its Verdicts
// stay pending.
//
// Provisioner is the controller provisioner. What may be new to place arrives
// as triggers and is collected in a batch, so that the pods of one rollout are
// planned together. When the batch ends, one pass takes a Snapshot, has it
// decided, creates the NodeClaims of the Plan, and tells the world at once what
// it has planned, so that the next pass does not plan it again.
//
// Pods are bound by the scheduler, never here. As long as any are pending, a
// pass follows the last one after RetryAfter without a trigger, since limits,
// prices and what the cloud has left change without one.
//
// Invariants:
//
//  1. No NodeClaim is created beyond the limits of its pool: what its largest
//     type has, with all there is and is on its way, stays within them. A limit
//     that was lowered after the plan was made counts.
//  2. A NodeClaim is created with what the NodePool said when the pass began,
//     and records that in its hash.
//  3. For a pod that nodes launched for it do not keep, at most three nodes of
//     a NodePool are launched in five minutes, and fewer from then on (brake.go).
//     Other pods are planned as if that pod could not use the NodePool.
//  4. All nodes for a PodGroup are asked for, or none. If not all can be had, those that
//     were launched are given back, and launched again after a pause (groups.go).
//  5. A pass that fails anywhere leaves what it has created planned.
package provisioning
