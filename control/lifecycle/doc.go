// SPDX-License-Identifier: Apache-2.0

// Package lifecycle manages a NodeClaim from creation to deletion: it launches
// the instance, registers its Node, waits until the Node can run pods, deletes
// claims that never get there, and cleans up when the claim is deleted.
//
// Vocabulary: a claim is launched once the provider has returned an instance,
// registered once the instance's Node has joined, and initialized once that Node can
// run what it was made for. The three are conditions of the claim, and together make
// it Ready.
//
// Invariants:
//
//  1. No instance is started for a claim whose finalizer is not persisted.
//  2. No second instance is started for a claim: the provider answers equally
//     for equal UIDs, and an answer that could not be persisted is remembered.
//  3. Once launched, registered or initialized, a claim never goes back.
//  4. The finalizer is removed when the provider reports that the instance is gone, and not before.
//  5. Every write of lists (conditions, taints, finalizers) is conditional on
//     what was read; a conflict means reading again, not an error.
//
// Not here: the gate on dynamic resource drivers. Claims that list requested
// drivers initialize without waiting for them, as with DRA switched off.
package lifecycle
