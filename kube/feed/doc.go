// SPDX-License-Identifier: Apache-2.0

// Package feed keeps package world up to date from the informers of the API
// server. It passes on Pods, Nodes, NodeClaims, NodePools, DaemonSets,
// PodDisruptionBudgets and Namespaces as they change. It also converts a pod
// again when other objects change what the pod needs: its persistent volumes,
// and the Services and controllers of default topology spread.
//
// It registers handlers with the informers of the manager's cache. It has no
// queue, because the world processes an event in microseconds and cannot fail.
package feed
