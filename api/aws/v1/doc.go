// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the karpenter.k8s.aws/v1 resource EC2NodeClass, the node
// class of the AWS provider, and the rules that belong to it: labels, the drift
// hash, and what the schema cannot check.
//
// Vocabulary:
//
//   - A selector term names resources of EC2: all its fields must hold. Of a
//     list of terms any may hold.
//   - The AMI family says how a node boots: the format of its user data, its
//     default disks and what of the kubelet's configuration reaches it.
//   - An alias, "family@version", stands for the images AWS publishes for a
//     family.
//
// Invariants:
//
//  1. Nothing here reads a clock, the environment or the network.
//  2. The names of the types reachable from EC2NodeClassSpec, and the names and
//     the order of their fields, are part of the drift hash (see
//     EC2NodeClass.Hash): changing one drifts every node of every cluster.
//     Golden tests guard against it.
//  3. Everything that upstream's schema accepts is accepted here, even if it makes little
//     sense, because clusters can have it stored already.
//
// The CRD manifest in api/crds is generated from the markers in this package.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
