// SPDX-License-Identifier: Apache-2.0

// Package nodepool maintains the status and the hash of NodePools. Each
// reconciler maintains one part:
//
//   - Hash: the drift hash in the annotations of the pool and, when its rules
//     have changed, of its claims.
//   - Counter: the capacity and number of the pool's nodes, in status.resources and status.nodes.
//   - Readiness: whether the node class is ready, condition NodeClassReady.
//   - Validation: whether the pool is valid, condition ValidationSucceeded.
//   - RegistrationHealth: whether recent instances of the pool became nodes, condition
//     NodeRegistrationHealthy.
//
// None of them decides anything about nodes. Status is written over what was
// read; a conflict means reading again, not an error.
package nodepool
