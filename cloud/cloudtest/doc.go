// SPDX-License-Identifier: Apache-2.0

// Package cloudtest holds what tests need around a cloud provider: the
// conformance suite every provider and every wrapper passes (Run), and a
// provider in memory that does what a test tells it to (Fake).
package cloudtest
