// SPDX-License-Identifier: Apache-2.0

// Package replay runs what a recording shows again, in virtual time and under another
// configuration: the pods come and go as they did, and the planner of the controller decides
// about the nodes.
//
// A recording is read once into a history: the demand for capacity, the configuration at each
// moment, how long things took, and what it all came to. A run is a simulation of events
// over a history. It is a function of the history and the NodePools that are changed: the same
// always give the same outcome. Package sim has more detail and needs a test to run in; a run has
// no API server and no cloud, so that a week takes minutes.
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
