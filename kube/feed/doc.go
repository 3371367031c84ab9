// SPDX-License-Identifier: Apache-2.0

// Package feed keeps package world up to date from the informers of the API
// server. It passes on Pods, Nodes, NodeClaims, NodePools, DaemonSets,
// PodDisruptionBudgets and Namespaces as they change. It also converts a pod
// again when other objects change what the pod needs: its persistent volumes,
// and the Services and controllers of default topology spread.
//
// It hangs on the informers of the manager's cache and has no queue of its
// own: the world takes in an event in microseconds and cannot fail.
package feed
