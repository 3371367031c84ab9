// SPDX-License-Identifier: Apache-2.0

// Package userdata writes what instances read when they boot for the first time,
// by which they join the cluster: a shell script, a NodeConfig, Bottlerocket's
// settings or PowerShell, merged with what the user wrote. It computes with
// values only, and the same values always give the same bytes: launch templates
// are named after what is in them.
//
// Vocabulary:
//
//   - The custom part is spec.userData of the EC2NodeClass. Where both say
//     something of the same thing, Karpenter's part wins; with the family Custom
//     there is nothing else.
//   - The kubelet's configuration is spec.kubelet, with the numbers that depend
//     on the instance type worked out.
//
// Text that ends up in a script between quotes comes from objects in the API. It
// is rejected when it could end the quotes.
package userdata
