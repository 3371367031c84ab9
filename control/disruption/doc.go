// Package disruption takes nodes away of its own accord: it carries out the
// Removals of a Plan. Which nodes to remove, and within which budget, is
// decided by package solve.
//
// Loop is the controller disruption. Each pass takes a Snapshot, has it
// decided, and remembers every Removal of the Plan as an intent. An intent
// that the Plans of all passes confirm until its due time is carried out: the
// Node is tainted, the NodeClaim says why, the world is told, and the
// NodeClaim is deleted. An intent that a Plan no longer has is forgotten.
// Nothing waits inside a pass.
//
// Invariants:
//
//  1. Nothing is disrupted that the Plan of this very pass does not remove.
//  2. A Node that carries our taint is being deleted, is on its way to it in
//     this process, or loses the taint in the next pass. So a crash at any
//     moment leaves nothing behind.
package disruption
