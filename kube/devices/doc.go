// SPDX-License-Identifier: Apache-2.0

// Package devices says which devices pods need by their ResourceClaims, and which
// devices drivers have published.
//
// A Store knows the ResourceClaims, ResourceSlices, DeviceClasses and DeviceTaintRules
// of the cluster, and which pods use which claim. For a pod it returns an Answer, and
// for a node the pools of devices. After each update, the Store returns a Change: the
// pods whose Answers may have changed, and the nodes whose pools have changed.
//
// # Rules
//
//   - Of a pool, only slices of the highest generation count. It is broken as long as
//     they are fewer than they say, or if it contradicts itself.
//   - A pool is of a node if all of its slices are; else it is the cluster's, and each
//     device says where it can be used.
//   - A claim that has an allocation is used where the allocation says. If the pod has
//     a node already, and no one else holds the claim elsewhere, the claim is one to
//     be met again: this is what it needs when it moves.
//   - A pod that requests an extended resource which a DeviceClass serves has the claim
//     that the scheduler will make for it; see model.DeviceRequest.
//   - A DeviceTaintRule that names a driver, and no pool or device, is about devices of
//     new nodes as well.
//   - A pod waits, and is not planned, while a claim of it does not exist, or is
//     about to be allocated for another pod.
//   - What the scheduler would not understand, it refuses; so do we.
package devices
