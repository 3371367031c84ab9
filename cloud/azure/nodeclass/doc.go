// SPDX-License-Identifier: Apache-2.0

// Package nodeclass holds the controllers of AKSNodeClasses. Reconciler resolves
// what new nodes get (the version of Kubernetes, images, the subnet) into the
// status, and keeps a class until no NodeClaim refers to it. Hash records the drift
// hash.
//
// Each condition has a step. All steps run in every pass, also after one has
// failed, and the status is written once at the end.
package nodeclass
