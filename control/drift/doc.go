// Package drift keeps what is said about nodes that could be disrupted, and
// watches over the roll-outs that follow.
//
// Reconciler is the controller nodeclaim.disruption. It keeps two conditions
// of a NodeClaim, each there or not there, never False:
//
//   - Drifted: the machine no longer is what its NodePool or its node class
//     asks for. The reason says in what; the transition time is the drift's age.
//   - Consolidatable: its node has been quiet for the consolidateAfter of its
//     pool.
//
// Invariants:
//
//  1. Only the user's edits and what the provider says of this very machine
//     drift a node at once. That its instance type is gone is believed when
//     answer after answer lacks it, and not while answers are suspiciously
//     small (see types).
//  2. What cannot be found out changes no condition.
package drift
