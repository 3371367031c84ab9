// SPDX-License-Identifier: Apache-2.0

// Package volumes computes where pods can run because of their persistent
// volumes, and how many volumes they attach there.
//
// A Store knows the PersistentVolumeClaims, PersistentVolumes and
// StorageClasses of the cluster as plain values, and which pods use which
// claim. For a pod it answers with an Answer: why the scheduler would refuse it
// on every node, or the topology of its volumes and their number by CSI driver.
// After each change, the Store returns the pods whose Answers may have changed.
//
// # Rules
//
//   - A claim that is bound is where its PersistentVolume's node affinity and
//     zone labels say; one that waits for its first consumer is where the
//     allowedTopologies of its StorageClass say, or on the node the scheduler
//     has already chosen for it.
//   - The host name in the affinity of a local or hostPath volume is not
//     looked at, so that its pod can be planned although its node is going
//     away.
//   - A pod that is bound is never rejected: its node has its volumes.
//   - Pods that share a volume which is still to be made, and which one node at a
//     time can have, belong in one zone. Volumes for many nodes are mostly in no
//     zone.
package volumes
