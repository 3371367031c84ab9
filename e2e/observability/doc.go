// SPDX-License-Identifier: Apache-2.0

// Package observability tests what deploy/observability gives people to watch
// Karpenter with: Prometheus scrapes the program while it gets into the
// situations that wake people. It holds nothing but tests.
package observability
