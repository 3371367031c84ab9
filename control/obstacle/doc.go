// SPDX-License-Identifier: Apache-2.0

// Package obstacle reports on a NodeClaim, as soon as it matters, which pods
// will never leave its node unless someone acts.
//
// An obstacle is a pod that waiting does not remove: its PodDisruptionBudget
// can never allow an eviction, it has several PodDisruptionBudgets, or its
// do-not-disrupt annotation has no end. It matters once the node is being
// drained, and before that when it keeps a drifted node from being replaced.
// Reconciler is the controller nodeclaim.obstacle; it keeps the condition
// DrainBlocked, which exists only while there is an obstacle, and publishes
// events on Node and NodeClaim. It deletes and evicts nothing.
package obstacle
