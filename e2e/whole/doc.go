// SPDX-License-Identifier: Apache-2.0

// Package whole tests the karpenter program as users run it: the process
// bin/karpenter on a real control plane with simulated kubelets. It holds
// nothing but tests.
package whole
