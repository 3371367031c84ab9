// SPDX-License-Identifier: Apache-2.0

// Package network finds the subnets and the security groups that EC2NodeClasses
// select, and keeps account of the free addresses of subnets.
//
// # Free addresses
//
// EC2 returns how many addresses a subnet has left, but only on request, and an
// instance takes the addresses of its pods gradually after its launch. So a
// launch reserves the addresses that the instance needs at least, in every
// subnet that it may use. When the launch reports the subnet of its instance,
// the reservations in other subnets are released. The last one ends when EC2
// has been asked after that.
package network
