// SPDX-License-Identifier: Apache-2.0

// Package provisioningrequest launches capacity, or checks for it, before pods
// exist.
//
// Reconciler is the controller provisioningrequest. It gives the world pods that stand in
// for those of each ProvisioningRequest, and a PodGroup that contains all of them, so that all of them have
// places or none has (docs/groups.md). They are planned after all pods that exist. For a request that only
// asks whether there is capacity, the PodGroup may use initialized nodes only.
//
// A request is Provisioned when all its pods have places on initialized nodes. From then on
// its capacity is booked for Booking. Each pod that names the request uses the place of one
// of these pods. When pods end, their part is not booked again. Pods that were deleted
// since then are remembered in memory only.
//
// Invariants:
//
//  1. Hydrated is false until every request that existed at the start has been looked
//     at, so that no one removes nodes that only seem empty.
//  2. A request that has failed, or whose booking has ended, keeps no capacity.
//  3. The pods of all requests of a namespace request no more than Limits together:
//     younger requests wait.
package provisioningrequest
