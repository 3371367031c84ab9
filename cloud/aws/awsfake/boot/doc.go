// SPDX-License-Identifier: Apache-2.0

// Package boot brings the instances of an AWS to life as Nodes of a cluster:
// the AWS in memory or any other that answers the SDK's clients.
//
//	userdata.go  what a machine makes of its user data: nodeadm's NodeConfig,
//	             the arguments of AL2's bootstrap.sh, Bottlerocket's settings,
//	             Windows' PowerShell
//	node.go      the Node that its kubelet and the cloud's controllers make of that
//	loop.go      looks at instances and Nodes, and does what is due
//
// An instance that runs is booted once: its user data is read, and what a
// kubelet would not start with keeps it from joining, with a line in the log. Of
// an instance that ends, the machine is dead at once (its Node is told so, and
// goes NotReady by the means of the cluster), and its Node is deleted when the
// instance is gone and the Node not ready, as the cloud-node-lifecycle controller
// does. Pods on the Nodes are run by the sandbox's simulated kubelets, which know
// them by their annotation.
//
// What is left out: images are not looked at (user data tells its kind by
// itself), scripts are not run, extended resources of device plugins are there
// at once, and the cloud-controller-manager's initialization takes no time.
package boot
