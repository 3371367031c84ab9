// SPDX-License-Identifier: Apache-2.0

// Package spread gives pods that say nothing about topology spread the
// constraints the cluster has by default (--scheduler-config), as
// kube-scheduler does: over the pods of the Services that select the pod and
// of the controller that owns it.
//
// A Store is told of these and of the pods, and tells which pods are
// constrained otherwise after each change.
package spread
