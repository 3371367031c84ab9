// SPDX-License-Identifier: Apache-2.0

// Package feed brings what the API server shows to the world: Pods, Nodes,
// NodeClaims, NodePools, DaemonSets, PodDisruptionBudgets and Namespaces, as
// they change; and what pods have to do with persistent volumes, and with the
// Services and controllers by which pods are spread by default, whenever these or
// the pods that share them change.
//
// It hangs on the informers of the manager's cache and has no queue of its
// own: the world takes in an event in microseconds and cannot fail.
package feed
