// SPDX-License-Identifier: Apache-2.0

// Package drain chooses the nodes to remove: empty ones, drifted ones, and
// those whose pods can be had for less elsewhere.
//
// A question about nodes is a trial (package pack) on the same Snapshot without
// them, with their pods pending. What is decided is entered into the Snapshot
// at once, so that the next question is asked of the cluster as it will be.
//
// In this order: unhealthy nodes; commands that are being confirmed; empty nodes; drifted nodes
// of static pools, then of others; spot nodes that the provider advises to leave; nodes, single ones and groups, whose pods can
// be had for less, those first that save most for what they disrupt.
//
// Nodes with pods of a PodGroup whose pods are disrupted together are one unit, for drift and
// for savings: all of them go in one command, or none does.
//
// # How to read it
//
// A round (round.go) is one decision. It is made of the scene, the cluster as it
// will be (scene.go); estimates of what pods cost at least (screen.go); inquiries,
// which ask trials about the scene (inquiry.go); and permits, which say what may be
// removed (candidates.go). whole.go tells which nodes go only together, anchor.go which
// wait for pods to come to their zone or to be spread, launched.go what labels new nodes
// will have. decide.go runs it: unhealthy.go, confirm.go, empty.go,
// static.go, drift.go, advised.go and consolidate.go each take nodes away for one
// reason. consolidate.go asks about nodes one by one and in groups (group.go);
// weigh.go makes an offer (offer.go) of the answer, which toll.go, price.go,
// balance.go and rehearse.go must agree to. If the NodePool of a launch stands in the way,
// because it is halted or its minValues are not met, weigh.go asks again without that NodePool. accept.go enters what was decided. No
// file uses a file that uses it.
//
// # Rules
//
// A command for Underutilized saves what it disrupts is worth within Policy.Payback
// (toll.go), and a replacement at least Policy.Hysteresis of what it removes.
//
// Why it comes to rest: such a command lowers the price of the cluster, whatever
// offering its launches become. So with the same pods and prices no sequence of
// them leads back to where it began.
package drain
