// SPDX-License-Identifier: Apache-2.0

// Package network finds the subnets and the security groups that EC2NodeClasses
// select, and keeps account of the free addresses of subnets.
//
// # Free addresses
//
// EC2 says how many addresses a subnet has left, but only when it is asked, and
// a machine takes the addresses of its pods bit by bit after it was started. So
// a launch takes what the machine will need at least out of the account: it
// counts from then on, until the launch says where its machine came to be (then
// what it took elsewhere is free again) and EC2 has been asked after that.
package network
