// SPDX-License-Identifier: Apache-2.0

// Package model has the plain values of a scheduling decision: the state of the
// cluster (Snapshot) and what to do (Plan).
//
// It imports only the standard library. Kubernetes objects are turned into
// these values by package kube, provider answers by package cloud's callers;
// package solve maps a Snapshot to a Plan and uses nothing else.
//
// # Vocabulary
//
//   - Shape: the scheduling-relevant part of a pod spec. Pods of one shape are
//     interchangeable, so work grows with shapes and not with pods.
//   - Pool: a NodePool that is ready to launch, with the instance types its
//     cloud provider offers for it.
//   - Offering: one (zone, capacity type[, reservation]) of an instance type
//     with its price and availability.
//   - Node: capacity that exists or is on its way: a registered Node, a launched instance that
//     has not joined, or a NodeClaim that is not launched yet.
//   - Launch: a new NodeClaim the Plan asks for.
//   - Verdict: why a pod stays pending, as data that prints itself.
//
// # Units
//
// CPU is in millicores, every other resource in its base unit (bytes, counts).
// Prices are nano-dollars per hour. Values are immutable once they are part of
// a Snapshot: readers share them freely, writers build new ones.
package model
