// SPDX-License-Identifier: Apache-2.0

// Package fit knows which shape may run where. It compiles a Snapshot once
// into rows that are cheap to test:
//
//   - a type row is an instance type in one pool, with what pods can use of it
//     once the daemons of that pool and type have taken their share;
//   - an offer is one offering of a type row;
//   - a node row is a node of the Snapshot with what is free on it.
//
// Thousands of nodes have few different taints and values of labels, so these are compared
// with what pods demand once for all nodes that have them (taints.go, labels.go).
//
// What a requirement allows is a set of offers (Bits), computed once per
// distinct requirement; what a shape allows is a handful of ANDs over those. It is kept as
// an OfferSet, which is smaller if its offers are those of few among many NodePools. A new
// node is of one NodePool: its offers are looked at in the Window of that one.
//
// # Invariants
//
//  1. An offer in Demand.Offers is available, allowed by its pool, and its
//     labels and taints suit the shape.
//  2. Several shapes may share an offer iff it is in the set of each and their
//     demands on the pool's open keys agree (see Catalogue.Agree).
//  3. Nothing here depends on map order, time or the number of processors.
package fit
