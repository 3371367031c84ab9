// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Karpenter against a real Kubernetes control plane; see
// package harness. It holds nothing but tests.
package e2e
