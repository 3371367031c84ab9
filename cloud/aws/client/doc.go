// SPDX-License-Identifier: Apache-2.0

// Package client is the part of AWS that Karpenter calls: narrow interfaces of
// the SDK's clients, which the simulated AWS implements too, and what the codes
// of their errors mean.
package client
