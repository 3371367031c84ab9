// SPDX-License-Identifier: Apache-2.0

// Package devices finds devices for claims, as kube-scheduler's allocator would: on one
// node, by first fit in the order of pools, slices and devices, with every
// combination tried until the first that works.
//
// # How to read it
//
//   - stock.go: the devices of one node, or of a node of one type, compiled, and what
//     is taken of them, which can be marked and rolled back.
//   - book.go: selectors and claims compiled against the kinds of devices that
//     a Snapshot has.
//   - search.go: finds devices for the claims of one pod.
//   - load.go: what a node's devices take: pods one after the other.
//   - charge.go: devices as resources, so that planning sees what cannot be met
//     before it asks for a search.
//   - served.go: extended resources that devices serve to pods without claims.
//   - why.go: says in words what keeps claims from their devices.
//
// # Vocabulary
//
//   - kind: what selectors see of a device; see model.DeviceKind.
//   - stock: devices of a node, or of all nodes of an instance type.
//   - set: the claims of a pod; pods with equal claims have the same set.
//   - load: a stock with the sets that planning has put there.
package devices
