// SPDX-License-Identifier: Apache-2.0

// Package azure is the provider for Azure Kubernetes Service. Nodes are AKS machines:
// AKS builds the virtual machine, boots it and joins it to the cluster. Or they are
// virtual machines that Karpenter makes itself, with what they need to join.
//
//	catalogue/      instance types, prices, quotas: refreshed and kept
//	retail/         Azure's price list
//	instancetype/   what a VM size is to Kubernetes (pure)
//	image/          image families, versions, the maintenance window (pure)
//	launch/         which offering a claim is launched with, and its tags (pure)
//	failure/        what Azure's errors about launches mean (pure)
//	shortage/       what Azure could not deliver a moment ago
//	nodeclass/      the controllers of AKSNodeClass
//	machine/        AKS machines: names, requests, life
//	vm/             virtual machines without AKS: names, requests, life
//	bootstrap/      the script by which these join (pure)
//	token/          bootstrap tokens, which replace themselves
//	subnet/         IDs of subnets (pure)
//	client/         the SDK: cloud, credentials, reads
//	azurefake/      Azure in memory, for tests
//
// Facts about VM sizes are in package cloud/azurevm. The provider itself turns
// NodeClaims into instances with these, says which of them no longer are what their
// AKSNodeClass asks for, and ends those whose creation fails.
package azure
