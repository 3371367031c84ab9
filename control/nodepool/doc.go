// SPDX-License-Identifier: Apache-2.0

// Package nodepool keeps what a NodePool says about itself true. Each
// reconciler tends one thing:
//
//   - Hash: the drift hash in the annotations of the pool and, when its rules
//     have changed, of its claims.
//   - Counter: how much there is of the pool, in status.resources and
//     status.nodes.
//   - Readiness: whether the node class is ready, condition NodeClassReady.
//   - Validation: whether the pool makes sense, ValidationSucceeded.
//   - RegistrationHealth: whether the pool's instances become nodes recently,
//     NodeRegistrationHealthy.
//
// None of them decides anything about nodes. Status is written over what was
// read; a conflict means reading again, not an error.
package nodepool
