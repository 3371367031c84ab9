// SPDX-License-Identifier: Apache-2.0

// Package replay runs a recording again, in virtual time and under another
// configuration: pods are created and end as recorded, and the planner of the
// controller decides about the nodes.
//
// A recording is read once into a history: the demand for capacity, the configuration at each
// moment, how long things took, and the totals. A run is a simulation of events over a
// history. Its outcome depends only on the history and on the changed NodePools. Package sim
// simulates in more detail, but only in tests. A run has no API server and no cloud, so that
// a week takes minutes.
//
// Vocabulary:
//
//	demand   a pod with those that its owner made in its place when nodes went
//	run      one replay. Its parts: the agenda of events, the config in force, the fleet of nodes, the load
//	         of pods with budgets, the scheduler, the provisioner and the disrupter, who decide, and the tally
//	node     a node of a NodePool in a run
//	pod      a pod in a run: a demand has another one after each eviction
//	guard    a PodDisruptionBudget in a run
//	surplus  a demand whose pod a ReplicaSet deleted because it had too many
package replay
