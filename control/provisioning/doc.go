// SPDX-License-Identifier: Apache-2.0

// Package provisioning finds nodes for pending pods: it carries out the
// Placements and Launches of a Plan, and reports why the pods of its Verdicts
// stay pending.
//
// Provisioner is the controller provisioner. Pods and other changes arrive as
// triggers and are collected in a batch, so that the pods of one rollout are
// planned together. When the batch ends, one pass takes a Snapshot, makes a
// Plan, creates its NodeClaims, and enters the planned pods in the world at
// once, so that the next pass does not plan them again.
//
// Pods are bound by the scheduler, never here. As long as any are pending, a
// pass follows the last one after RetryAfter without a trigger, since limits,
// prices and what the cloud has left change without one.
//
// Invariants:
//
//  1. No NodeClaim is created beyond the limits of its pool: the sum of all existing nodes,
//     nodes on their way, and the largest type of the new claim stays within them. A limit that
//     was lowered after the plan was made counts.
//  2. A NodeClaim is created from the NodePool as it was when the pass began, and records its hash.
//  3. If nodes are launched for a pod and do not keep it, at most three nodes of a NodePool
//     are launched for it in five minutes, and fewer later (brake.go).
//     Other pods are planned as if that pod could not use the NodePool.
//  4. All nodes for a PodGroup are requested, or none. If some of them cannot be launched,
//     the others are terminated, and all are launched again after a pause (groups.go).
//  5. A pass that fails anywhere leaves what it has created planned.
package provisioning
