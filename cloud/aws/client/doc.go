// SPDX-License-Identifier: Apache-2.0

// Package client has the interfaces of the AWS services that Karpenter calls,
// and the meaning of their error codes. The SDK's clients and the simulated AWS
// implement these interfaces.
package client
