// SPDX-License-Identifier: Apache-2.0

// Package vm makes virtual machines that become nodes, without AKS: each with a
// network interface and a disk of its own, all in the resource group of the nodes and
// of one name, which follows from that of the NodeClaim. So a launch that is repeated
// after a crash finds what there is.
//
//	vms.go      the life of a virtual machine
//	body.go     requests that create
//	network.go  load balancers and security groups that network interfaces join
//	graph.go    lists, by Azure Resource Graph, which lags behind
//	billing.go  the extension by which AKS bills virtual machines
package vm
