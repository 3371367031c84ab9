// SPDX-License-Identifier: Apache-2.0

// Package nomination tells kube-scheduler where pods are to go: it writes the
// node a pod is planned on into status.nominatedNodeName. The scheduler tries
// that node first, and keeps its room from other pods of the same or a lower
// priority.
//
// It is done when it counts: for a new node just before it is released to
// pods, as a registration hook of its claim; and for any node when pods are
// placed on it or when it gets ready, since the scheduler forgets the
// nomination of a pod it looks at before the node takes pods.
//
// Invariants:
//
//  1. What others have written stays. Pods are written by server-side apply
//     without force, so a nomination of the scheduler's own, made because it
//     evicts pods there, is a conflict, and a conflict ends the matter.
//  2. A nomination is advice. Whatever goes wrong with it holds up neither
//     nodes nor plans.
//  3. A pod that has lost its plan names no node on our behalf any more.
package nomination
