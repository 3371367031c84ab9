// SPDX-License-Identifier: Apache-2.0

// Package convert turns Kubernetes objects into the plain values of package
// world, and a planned launch into a NodeClaim.
//
// Every field of a pod spec is used, irrelevant or rejected; a test keeps the
// list complete, so that a new Kubernetes release cannot add a field no one
// has thought about. A pod that uses a rejected field is converted all the same:
// its Shape says what is rejected, and no plan will place it.
//
// Conversions are functions of the object alone, but for what a Converter is
// given to ask: where a pod's volumes are depends on other objects, and a pod
// is converted again when these change. What depends on the time is handed on
// as a time, or as a function of it.
package convert
