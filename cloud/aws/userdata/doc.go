// SPDX-License-Identifier: Apache-2.0

// Package userdata writes the user data by which instances join the cluster
// when they boot for the first time: a shell script, a NodeConfig,
// Bottlerocket's settings or PowerShell, merged with the user's own user data.
// It computes with values only, and the same values always give the same bytes:
// launch templates are named after what is in them.
//
// Vocabulary:
//
//   - The custom part is spec.userData of the EC2NodeClass. If both set the same value,
//     Karpenter's part wins. With the family Custom, there is only the custom part.
//   - The kubelet's configuration is spec.kubelet, with the numbers that depend
//     on the instance type worked out.
//
// Text that scripts contain in quotes comes from objects in the API. It is
// rejected if it could end the quotes.
package userdata
