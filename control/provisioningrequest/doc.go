// SPDX-License-Identifier: Apache-2.0

// Package provisioningrequest has capacity launched, or looked for, before pods exist.
//
// Reconciler is the controller provisioningrequest. It gives the world pods that stand in
// for those of each ProvisioningRequest, and a PodGroup that all of them are of, so that
// they have places all together or not at all (docs/groups.md), after all pods that
// exist. For a request that only asks whether there is capacity, the PodGroup may use
// initialized nodes only.
//
// A request is Provisioned when all its pods have places on initialized nodes. From then on
// its capacity is booked for Booking. Each pod that names the request uses the place of
// one that stands in. What pods have used is not booked again when they end. Only this
// process remembers those that were deleted then.
//
// Invariants:
//
//  1. Hydrated is false until every request that existed at the start has been looked
//     at, so that no one removes nodes that only seem empty.
//  2. A request that has failed, or whose booking has ended, keeps no capacity.
//  3. The pods of all requests of a namespace request no more than Limits together:
//     younger requests wait.
package provisioningrequest
