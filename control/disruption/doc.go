// SPDX-License-Identifier: Apache-2.0

// Package disruption takes nodes away voluntarily: it carries out the
// Commands of a Plan. Which nodes to remove, what replaces them, and what
// budgets allow, is decided by package solve.
//
// Loop is the controller disruption. A pass takes a Snapshot, has it decided,
// and remembers every Command of the Plan as an intent, of which the next
// Snapshot tells. An intent that all Plans confirm until it is due is carried
// out, in the form of the latest Plan; drift is due at once. An intent that a
// Plan no longer has is forgotten. Nothing waits inside a pass: any number of
// commands are under way at once, and each pass takes all of them as far as they
// go. While they are, most passes do nothing else (cadence).
//
// A command that is carried out goes through these steps:
//
//  1. Its nodes are tainted, and their NodeClaims say why.
//  2. The claims that replace them are created, and its pods planned there.
//  3. The world is told that its nodes are going. It is an execution now.
//  4. Once every replacement is initialized, the claims of its nodes are
//     deleted. The rest is termination.
//
// An execution of which a replacement will never be there, or that takes too
// long, is undone.
//
// Invariants:
//
//  1. Nothing is disrupted that a Plan of this very pass does not remove,
//     or that its budgets do not allow when it is started.
//  2. A Node that carries our taint is being deleted, is part of an execution,
//     or loses the taint in the next pass. So a crash at any moment leaves no
//     mark behind.
//  3. No claim is deleted before all that replaces it is initialized.
//  4. What was created for a command that did not come to pass is deleted
//     unless it is of use, or is a node like any other.
package disruption
