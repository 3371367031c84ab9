// SPDX-License-Identifier: Apache-2.0

// Package pack places pods: first on capacity that exists or is on its way,
// then on new nodes, cheapest plan first.
//
// # How to read it
//
// A problem is a Snapshot compiled for one policy; it does not change. A draft is
// a plan under construction. It can be marked and rolled back as a whole. The
// phases take a draft and add to it:
//
//   - existing.go keeps pods where an earlier plan put them.
//   - domains (settle.go, cells.go, bundle.go) fills the nodes there are and
//     decides in which domains nodes are launched for pods with rules about each
//     other.
//   - exchange (exchange.go) gives the places on these nodes to the pods that would
//     cost most on new nodes.
//   - market (buy.go, launch.go, fewer.go, spend.go, covering.go, candidates.go,
//     rivals.go, boxes.go) launches nodes.
//   - repair (doomed.go, verify.go, topup.go, insert.go, confirm.go, outlook.go, futures.go) checks the draft as the scheduler
//     will and finds places for what is left.
//   - thrift (thrift.go) abandons nodes of small plans that their pods can do without.
//   - merging (merge.go) brings small plans within limits, by nodes that take the pods of two.
//   - exhaust (exhaust.go) compares the plan for a few pods with all other ways to share them out.
//   - secure (secure.go) launches new nodes on demand where a pool asks for a share of
//     them.
//   - apart (apart.go) moves pods that prefer a node of their own to nodes of the
//     plan that have room, once the plan is chosen.
//   - disperse (disperse.go, spill.go, spotpools.go) launches some of them in other spot
//     pools, or two in place of one, or moves pods between them, so that no workload
//     is in few of these.
//   - proof (bound.go, pieces.go) proves how much any plan must cost.
//   - report (render.go, verdict.go, joining.go) tells what was planned, and why pods stay
//     pending.
//
// attempt.go runs the phases, and runs them again with the lessons of the attempt
// before. prefer.go (spare.go, wish.go) makes plans that honor preferences. place.go and trial.go are
// what other packages call. No file uses a file that uses it.
//
// # Vocabulary
//
//   - demand: the pods of one entry of Snapshot.Pending, or a part of them that
//     is tied to an area.
//   - tier: the pools of equal weight. A shape uses the heaviest tier that has
//     any offer for it; only limits and rules between pods push it to the next.
//   - candidate: an offer worth considering: no other that could stand in for
//     it is as cheap, as roomy and open to as many shapes.
//   - floor: the minValues of a pool for one label. There a candidate is a box:
//     the room that all types of a list have which spans enough values.
//   - prepaid: nodes that reservations still give. They are spent before
//     anything is launched in a tier, and regrouped with the other new nodes then.
//   - covering: the problem that package cover solves: the demands that have
//     pods left, as items, and the candidates of a tier.
//   - bin: a number of equal new nodes, as package cover chose them.
//   - area: a combination of topology domains (say a zone) that rules between
//     pods tell apart. A cell is an area as one demand sees it: with the nodes
//     there that take its pods, and the price of a new one.
//   - bundle: pods that must share a node, launched for as one.
package pack
