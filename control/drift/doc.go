// SPDX-License-Identifier: Apache-2.0

// Package drift maintains the conditions of nodes that could be disrupted, and
// controls the rollouts that follow.
//
// Reconciler is the controller nodeclaim.disruption. It maintains two
// conditions of a NodeClaim, each of which is True or absent, never False:
//
//   - Drifted: the instance no longer matches its NodePool or its node class. The reason names
//     the difference; the transition time is when it was found.
//   - Consolidatable: its node has been quiet for the consolidateAfter of its
//     pool.
//
// Rollout is the controller nodepool.rollout. A roll-out is the replacement of
// the drifted nodes of a NodePool. It keeps two conditions of the NodePool,
// both ours: RolledOut, whether there is none left, and RolloutHalted, which
// stops replacements, of drifted nodes and of underutilized ones, by instances that
// do not become nodes. The latter is a state machine whose only state is the
// condition:
//
//	none    → True     two instances in a row have failed to join
//	True    → Unknown  a while without another failure, nothing on its way
//	Unknown → True     the one replacement this allows is under way, or failed
//	any     → none     an instance has joined, or the pool or its node class was
//	                   edited
//
// Invariants:
//
//  1. Only the user's edits and what the provider says of this very instance
//     drift a node at once. That its instance type is gone is believed when
//     answer after answer lacks it, and not while answers are suspiciously
//     small (see typeMemory).
//  2. What cannot be found out changes no condition.
//  3. Replacements that are halted are tried again at most ten minutes after the
//     last failure, one at a time.
package drift
