// SPDX-License-Identifier: Apache-2.0

// Package kwok is the provider without instances: a launch creates a Node
// object that kwok, or a simulated kubelet, runs.
//
// # What a machine is
//
// The provider has no memory of its own. A machine is what the API says:
//
//  1. It is launched when a NodeClaim has recorded it in its status. Create
//     writes nothing; it computes the machine from the claim. The name of the
//     machine, "kwok-<claim>-<word>-<word>-<number>", depends on the claim's
//     name and UID only, and a claim that has recorded a machine is answered
//     with that one.
//  2. It boots when its Node appears. The Boot controller makes the Node once
//     the node class's registration delay has passed since the launch.
//  3. It is gone when its Node is deleted or being deleted, or, before there
//     was one, when its claim is.
//
// A crash between any two writes therefore loses and doubles nothing: before
// the claim records a machine there is none, and afterwards Boot finds the
// claim and goes on. A Node whose claim has vanished is deleted by Boot, and
// also carries the claim as its owner for Kubernetes' garbage collector.
//
// # Instance types
//
// A Catalogue is generated (DefaultEntries) or read from a file, whose format
// Entry describes. An offering that fails to launch is advertised as
// unavailable for three minutes.
package kwok
