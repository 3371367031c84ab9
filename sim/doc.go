// SPDX-License-Identifier: Apache-2.0

// Package sim runs the whole shipped system in one process: the reconcilers as
// package wiring registers them, the world and the planner, against an API
// server and a cloud in memory, with a virtual clock. It is for tests.
//
// A run is a sequence of steps. In each, one thing happens, drawn from a seed:
// a call that a reconcile waits to make is carried out (or fails), a watch
// event reaches a cache, a cache's news reaches one of its handlers, a
// controller is handed one request, an Actor does one thing, or time passes
// until something is due. Then everything runs until it waits again, and the
// Laws are checked. So any two things that could happen in either order do,
// under some seed, and one seed always gives the same run.
//
// The process under test can be ended between any two steps and restarted
// against the same API and cloud.
//
// Vocabulary:
//
//	process   what is under test: the controllers with their caches and queues
//	actor     someone else in the cluster: scheduler, kubelets, workloads
//	call      a request of the process to the API server or the cloud
//	fault     what goes wrong with a call, or with the process
//	law       what must hold after every step, whatever goes wrong
package sim
