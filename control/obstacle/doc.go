// SPDX-License-Identifier: Apache-2.0

// Package obstacle says on a NodeClaim, as soon as it matters, which pods will
// never leave its node as things are.
//
// An obstacle is a pod that no waiting moves: its PodDisruptionBudget can never
// be satisfied, it has several of them, or it asks never to be disrupted. It
// matters once the node is being drained, and before that when it keeps a
// drifted node from being replaced. Reconciler is the controller
// nodeclaim.obstacle; it keeps the condition DrainBlocked, which is there only
// while there is an obstacle, and tells Node and NodeClaim of it. It deletes
// and evicts nothing.
package obstacle
