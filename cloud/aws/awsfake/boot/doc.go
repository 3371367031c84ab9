// SPDX-License-Identifier: Apache-2.0

// Package boot creates the Nodes of a cluster for the instances of an AWS: the
// AWS in memory, or any other that serves the SDK's clients.
//
//	userdata.go  the settings in the user data of an instance: nodeadm's NodeConfig,
//	             the arguments of AL2's bootstrap.sh, Bottlerocket's settings,
//	             Windows' PowerShell
//	node.go      the Node that its kubelet and the controllers of the cloud create
//	loop.go      looks at instances and Nodes, and does what is due
//
// An instance that runs is booted once: its user data is read, and what a
// kubelet would not start with keeps it from joining, with a line in the log. When an instance terminates,
// its kubelet stops at once: an annotation on the Node tells the simulated kubelet, and the cluster marks the
// Node as NotReady. When the instance is gone and the Node is not ready, the Node is deleted, as by the
// cloud-node-lifecycle controller. Pods on the Nodes are run by the sandbox's simulated kubelets, which know
// them by their annotation.
//
// What is left out: images are ignored (the user data shows its kind), scripts are not
// run, extended resources of device plugins exist at once, and the
// cloud-controller-manager's initialization takes no time.
package boot
