// SPDX-License-Identifier: Apache-2.0

// Package static keeps NodePools that set spec.replicas at that many nodes: the
// controllers static.provisioning and static.deprovisioning.
//
// # Counting
//
// Counted are NodeClaims, from when they are created until they are gone,
// launched or not. Each is in one state: leaving when it or its instance is being
// deleted, pending when a command under way takes it away, else active. A command
// that replaces a node marks it as pending before it creates what replaces it.
//
// The world says when there is nothing to do, which is nearly always. Before
// anything is created or deleted, the claims are listed from the API server, not
// from a cache: so neither a crash nor a lost answer nor a cache that lags can
// make too many of one or of the other.
//
// # Invariants
//
//  1. Active and pending claims never become more than replicas, and all of a
//     pool's claims never more than limits.nodes, by what is created here.
//  2. What is about to be created is granted by the world, which all that create
//     claims of static pools ask; it is given back whatever happens.
//  3. Scale-down deletes claims only as long as the active ones are more than
//     replicas. It is what the user has asked for, so it is subject to no
//     budget; the drain that follows honors PodDisruptionBudgets.
package static
