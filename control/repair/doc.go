// SPDX-License-Identifier: Apache-2.0

// Package repair replaces instances whose Node reports that they are unhealthy.
//
// Reconciler is the controller node.health. A provider's RepairPolicies name
// the node conditions that do not recover by waiting. If a Node has such a
// condition for longer than the policy tolerates, its NodeClaim is deleted. The
// drain that follows is forced, because a kubelet that does not respond
// terminates no pods. Provisioning launches capacity for the pods elsewhere.
// Budgets, do-not-disrupt and PodDisruptionBudgets do not delay a repair.
//
// Invariants:
//
//  1. Nothing is repaired while too many Nodes of the pool are unhealthy at
//     once: a fault they share is not healed by new instances.
//  2. A claim that repair deletes has a deadline in the past from then on,
//     whether or not the Node recovers. The deadline is written first; one that
//     repair did not follow with the deletion, because of a crash or a
//     conflict, is removed if the Node recovers.
package repair
