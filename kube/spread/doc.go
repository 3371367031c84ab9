// SPDX-License-Identifier: Apache-2.0

// Package spread gives pods without topology spread constraints the default
// constraints of the cluster (--scheduler-config), as kube-scheduler does.
// Their selectors come from the Services that select the pod and from the
// controller that owns it.
//
// A Store receives Services, controllers and pods. Each change returns the pods
// whose constraints are different now.
package spread
