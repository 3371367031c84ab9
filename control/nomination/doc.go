// SPDX-License-Identifier: Apache-2.0

// Package nomination tells kube-scheduler which node a pod is planned on: it
// writes the node into status.nominatedNodeName of the pod. The scheduler tries
// that node first, and reserves its capacity against other pods of the same or
// a lower priority.
//
// Nominations are written when they take effect. For a new node, that is just
// before it is opened for pods, in a registration hook of its claim. For any
// node, it is when pods are placed on it or when it becomes ready, because the
// scheduler drops the nomination of a pod that it processes before the node
// accepts pods.
//
// Invariants:
//
//  1. What others have written stays. Pods are written by server-side apply
//     without force, so a nomination of the scheduler's own, made because it
//     evicts pods there, is a conflict, after which the pod is left alone.
//  2. A nomination is a hint. An error in writing it delays neither nodes nor plans.
//  3. If a pod is no longer planned on a node, its nomination is removed.
package nomination
