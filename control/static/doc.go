// SPDX-License-Identifier: Apache-2.0

// Package static keeps NodePools that set spec.replicas at that many nodes: the
// controllers static.provisioning and static.deprovisioning.
//
// # Counting
//
// Counted are NodeClaims, from when they are created until they are gone,
// launched or not. Each is in one state: leaving if it or its instance is being
// deleted, pending if a command in progress removes it, and otherwise active. A
// command that replaces a node marks it as pending before it creates the
// replacement.
//
// In most cases, the state in the world shows that there is nothing to do.
// Before anything is created or deleted, the claims are listed from the API
// server and not from a cache. So a crash, a lost answer or a lagging cache
// cannot cause too many creations or deletions.
//
// # Invariants
//
//  1. Active and pending claims never become more than replicas, and all of a
//     pool's claims never more than limits.nodes, by what is created here.
//  2. The world grants each creation before it happens. All code that creates claims of
//     static pools asks it, and always returns the grant afterwards.
//  3. Scale-down deletes claims only as long as the active ones are more than
//     replicas. It is what the user has asked for, so it is subject to no
//     budget; the drain that follows honors PodDisruptionBudgets.
package static
