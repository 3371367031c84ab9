// SPDX-License-Identifier: Apache-2.0

// Package disruption disrupts nodes voluntarily: it carries out the Commands of
// a Plan. Package solve decides which nodes to remove, what replaces them, and
// what budgets allow.
//
// Loop is the controller disruption. A pass takes a Snapshot, has it decided,
// and remembers every Command of the Plan as an intent. The next Snapshot
// contains the intents. If all Plans confirm an intent until it is due, it is
// carried out in the form of the latest Plan; drift is due at once. If a Plan no
// longer has it, the intent is dropped. Nothing waits inside a pass: any number
// of commands are under way at once, and each pass takes all of them as far as
// they go. While they are, most passes do nothing else (cadence).
//
// A command that is carried out goes through these steps:
//
//  1. Its nodes are tainted, and their NodeClaims say why.
//  2. The claims that replace them are created, and its pods planned there.
//  3. The world marks its nodes as deleting. The command is an execution now.
//  4. Once every replacement is initialized, the claims of its nodes are
//     deleted. The rest is termination.
//
// An execution is undone if one of its replacements can never become ready, or
// if it takes too long.
//
// Invariants:
//
//  1. A node is disrupted only if the Plan of the same pass removes it, and budgets allow it
//     when the command starts.
//  2. A Node that carries our taint is being deleted, is part of an execution,
//     or loses the taint in the next pass. So a crash at any moment leaves no
//     mark behind.
//  3. No claim is deleted before all that replaces it is initialized.
//  4. NodeClaims that were created for a command that failed are deleted, unless they have
//     become nodes or pods are planned on them.
package disruption
