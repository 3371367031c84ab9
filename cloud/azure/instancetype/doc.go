// SPDX-License-Identifier: Apache-2.0

// Package instancetype says what the sizes of Azure virtual machines are to
// Kubernetes: the labels of their nodes, their capacity, what of it pods can use,
// and how they are offered. It computes with values only; calls to Azure are made
// elsewhere.
//
// NewFacts decides which sizes AKS and Karpenter support at all. Supported decides
// which of them an AKSNodeClass can use. New makes an instance type of what is
// known of the size (Facts), of the node class (Class), of the cluster (Cluster)
// and of prices and shortages (Market). Its result depends on nothing else, so
// equal inputs may share one.
//
// # Zones
//
// A size is offered in each availability zone, with the zone label REGION-NUMBER,
// and outside of zones, with the zone label 0: Azure places such a regional
// instance anywhere in the region.
package instancetype
