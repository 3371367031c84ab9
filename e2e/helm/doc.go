// SPDX-License-Identifier: Apache-2.0

// Package helm tests the charts as users install them: Helm itself, a real API
// server with RBAC, and the program with the environment and the identity that
// the chart gives it. It holds nothing but tests.
package helm
