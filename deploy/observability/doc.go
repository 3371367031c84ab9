// SPDX-License-Identifier: Apache-2.0

// Package observability holds alert rules and a dashboard for Karpenter. It
// is a module of its own: its tests use Prometheus' own code, so that what is
// checked here is what Prometheus loads.
package observability
