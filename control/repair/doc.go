// SPDX-License-Identifier: Apache-2.0

// Package repair replaces instances whose Node says that they are broken.
//
// Reconciler is the controller node.health. A provider's RepairPolicies name
// the node conditions that no waiting heals. A Node that has had one of them
// for longer than the policy tolerates loses its NodeClaim: the drain that
// follows is by force, as a kubelet that does not answer ends no pod, and
// provisioning makes room for the pods elsewhere. Neither budgets nor
// do-not-disrupt nor PodDisruptionBudgets hold a repair up.
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
