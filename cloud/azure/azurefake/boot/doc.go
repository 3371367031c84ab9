// SPDX-License-Identifier: Apache-2.0

// Package boot brings the machines of Azure in memory to life as Nodes of a
// cluster.
//
//	node.go  the Node that a kubelet and AKS make of a virtual machine
//	join.go  the TLS bootstrap of virtual machines without AKS, by their own script
//	loop.go  looks at virtual machines and Nodes, and does what is due
//
// A virtual machine that runs is booted once. Of one that ends, the kubelet is dead
// at once (its Node is told so, and goes NotReady by the means of the cluster), and
// its Node is deleted when the virtual machine is gone and the Node not ready, as
// Azure's cloud controller does. Pods on the Nodes are run by the sandbox's simulated
// kubelets, which know them by their annotation.
//
// What is left out: images are not booted, and extended resources of device plugins
// are there at once.
package boot
