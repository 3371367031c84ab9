// SPDX-License-Identifier: Apache-2.0

// Package capacitybuffer keeps spare capacity for pods that do not exist yet.
//
// Reconciler is the controller capacitybuffer. It resolves each CapacityBuffer
// to a pod and a number of replicas, and gives the world as many pods that
// stand in for it. They are planned like pods that exist, after all of those:
// nodes are launched for them, and nodes they are planned on do not count as
// empty. When real pods use this capacity, the next pass of provisioning
// launches new nodes for it.
//
// Pods that stand in exist in memory only. They are the same whenever they are
// recreated, so that what was planned for them stays planned. They have no
// events. The condition Provisioning of their buffer sums up what the latest
// pass has planned for all of them.
//
// Buffers that Kueue has made for one Workload get their capacity together or not at all
// (teams.go).
//
// Invariants:
//
//  1. Hydrated is false until every buffer that existed at the start has been
//     looked at, so that no one removes nodes that only seem empty.
//  2. A buffer that cannot be resolved, or is being deleted, keeps no capacity. A buffer that
//     could not be read keeps the capacity that it had.
//  3. The pods of all buffers of a namespace request no more than Limits together.
//  4. One write brings the whole status up to date, and only when it changes.
package capacitybuffer
