// SPDX-License-Identifier: Apache-2.0

// Package lifecycle takes a NodeClaim from its creation to its end: it
// launches the instance, recognises the Node that comes of it, waits until the
// Node can run pods, abandons what never gets there, and cleans up when the
// claim is deleted.
//
// Vocabulary: a claim is launched once the provider has answered with a
// instance, registered once the instance's Node has joined, and initialized once
// that Node can run what it was made for. The three are conditions of the
// claim, and together make it Ready.
//
// Invariants:
//
//  1. No instance is started for a claim whose finalizer is not persisted.
//  2. No second instance is started for a claim: the provider answers equally
//     for equal UIDs, and an answer that could not be persisted is remembered.
//  3. Once launched, registered or initialized, a claim never goes back.
//  4. The finalizer goes when the provider says that the instance is gone, and
//     not before.
//  5. Every write of lists (conditions, taints, finalizers) is conditional on
//     what was read; a conflict means reading again, not an error.
//
// Not here: the gate on dynamic resource drivers. Claims that list requested
// drivers initialize without waiting for them, as with DRA switched off.
package lifecycle
