// SPDX-License-Identifier: Apache-2.0

// Package instancetype describes EC2 instance types for Kubernetes: the labels
// of their nodes, their capacity, what pods can use of it, and their offerings.
// It computes with values only; other packages make the calls to AWS.
//
// New makes a type from facts about it (Facts), about the node class (Class)
// and about the cluster (Cluster). Its result depends on nothing else, so equal
// inputs can share one result. Offerings is a separate function, because prices
// and capacity change while types do not.
//
// # Pods and network interfaces
//
// With EKS each pod takes an IP address of one of the node's network interfaces.
// A node has one address per interface for itself, and two pods on the host's
// network that need none; so with u interfaces on the default network card that
// are left to pods, and n addresses each, u·(n−1)+2 pods fit. The images' own
// reservations of memory grow with that number, by 11 MiB a pod, whatever
// maxPods says; those of Bottlerocket and Windows grow with the real number.
//
// # Memory
//
// What the kernel sees is less than advertised: 64 MiB less on arm64, then a
// share that differs by type and kernel and is estimated (7.5 % by default)
// until a node has shown it; see Memory.
package instancetype
