// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the karpenter.azure.com/v1beta1 resource AKSNodeClass,
// the node class of the Azure provider, with its labels, its drift hash and its
// conditions.
//
// Vocabulary:
//
//   - The image family is the operating system that a user asks for. The
//     family Ubuntu follows the version of Kubernetes.
//   - Zone "0" is the zone label of a regional instance, one that Azure places
//     in no availability zone.
//
// Invariants:
//
//  1. Nothing here reads a clock, the environment or the network.
//  2. The names of the types reachable from AKSNodeClassSpec, and the names and
//     the order of their fields, are part of the drift hash (see
//     AKSNodeClass.Hash): changing one drifts every node of every cluster.
//     Golden tests guard against it.
//  3. What upstream's schema accepts is accepted here.
//
// The CRD manifest in api/crds is generated from the markers in this package.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.azure.com
package v1beta1
