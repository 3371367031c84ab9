// SPDX-License-Identifier: Apache-2.0

// Package cloud is the contract between the controllers and a cloud provider:
// the methods of a provider, the values that describe its instances, and the
// errors that change what happens next.
//
// Providers live in packages below this one and are listed in cmd/karpenter/wiring.
// Behavior that every provider needs (metering, fault injection) is a wrapper
// around a Provider in package wrap; every provider and wrapper passes the suite in
// package cloudtest.
package cloud
