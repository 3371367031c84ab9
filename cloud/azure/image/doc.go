// SPDX-License-Identifier: Apache-2.0

// Package image decides which images the nodes of an AKSNodeClass boot. It
// computes with values only; calls to Azure are made elsewhere.
//
// A family is an operating system with its version. It has image definitions, one
// for each architecture and generation of virtual machines. A definition has
// versions. An image is one version of a definition, in the community galleries,
// which every subscription can read, or in the shared galleries of AKS.
package image
