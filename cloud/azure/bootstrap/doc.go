// SPDX-License-Identifier: Apache-2.0

// Package bootstrap says what a virtual machine needs to become a node of an AKS
// cluster: the script that runs at its first boot. It computes with values only, and
// the same values give the same bytes.
//
//	script.go      the script, and how values get into it safely
//	variables.go   what the provisioning scripts of AKS' images read
//	kubelet.go     flags of the kubelet
//	labels.go      labels of the node
//	containerd.go  configuration of containerd
//
// AKS' images hold the kubelet, containerd and the provisioning scripts. What these
// read is no public interface: it was learnt from upstream's releases, and has not
// been tried on a real image.
package bootstrap
