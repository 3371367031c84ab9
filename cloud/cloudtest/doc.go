// SPDX-License-Identifier: Apache-2.0

// Package cloudtest is for tests of and with cloud providers. It has the
// conformance suite that every provider and every wrapper passes (Run), and a
// provider in memory that tests control (Fake).
package cloudtest
