// SPDX-License-Identifier: Apache-2.0

// Package fleet watches a cluster of the autoscaler, and keeps its state: machines, pods, pools and prices.
//
// Vocabulary: a machine is a NodeClaim and its Node seen as one, from the claim's creation until both are gone; a Node
// without a claim is a machine, too. A workload is what pods belong to: a Deployment, a Job, or a lone pod itself.
//
// All data comes from watches. Peaks and the money spent include every change that the API server reported,
// even if Views are rare.
package fleet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// State is how far a machine is in its life.
type State string

// The states of a machine, in the order they are passed through. NotReady is a Ready machine's interruption.
const (
	Launching State = "launching" // claimed; nothing launched yet
	Booting   State = "booting"   // launched; no Node that takes pods yet
	Ready     State = "ready"
	NotReady  State = "not ready"
	Removing  State = "removing"
)

// View is what there is at one moment. It belongs to the caller.
type View struct {
	Machines  []Machine  // by pool and name
	Workloads []Workload // by name; only those that have pods
	Pools     []Pool     // by name

	Bought    []Purchase // all machines since the watch began, most expensive first
	Price     float64    // dollars per hour, of all machines that are paid for
	PeakPrice float64    // the highest Price since the watch began
	Spent     float64    // dollars, since the watch began
}

// Machine is a NodeClaim, its Node, or both.
type Machine struct {
	Name         string // the claim's, else the Node's
	Node         string // empty until there is one
	Pool         string // empty if no pool owns it
	Type         string // empty until launched
	Zone         string
	CapacityType string
	Price        float64 // dollars per hour
	State        State
	Capacity     corev1.ResourceList
	Used         Amount // what its pods request
	Pods         int    // that use capacity
}

// Amount is of the two resources that everything has.
type Amount struct {
	MilliCPU int64
	Memory   int64 // bytes
}

func (a *Amount) add(b Amount) {
	a.MilliCPU += b.MilliCPU
	a.Memory += b.Memory
}

// Workload counts the pods of one owner.
type Workload struct {
	Name     string
	Waiting  int // without a node
	Starting int // bound, not running yet
	Running  int
	Finished int // succeeded or failed
	Stopping int // being deleted; not counted above
	// Refused counts, by the autoscaler's own words, the waiting pods that it could not place.
	Refused map[string]int
}

// Pods counts those that exist.
func (w *Workload) Pods() int { return w.Waiting + w.Starting + w.Running + w.Finished + w.Stopping }

// Pool is a NodePool and what it owns.
type Pool struct {
	Name   string
	Ready  bool
	Reason string              // why it is not ready; empty if waiting for its first reconcile
	Limits corev1.ResourceList // nil: none
	// Budgets are those that hold always and for all reasons, such as "10%".
	Budgets []string
	Usage   corev1.ResourceList // capacity of its machines that are not being removed; "nodes" counts them
	Peak    corev1.ResourceList // the highest Usage since the watch began, by resource
}

// Purchase counts machines of one kind.
type Purchase struct {
	Type         string
	CapacityType string
	Price        float64 // dollars per hour, of one
	Count        int
}

// Totals sums the pods of all workloads.
func (v *View) Totals() Workload {
	pods := Workload{}
	for i := range v.Workloads {
		w := &v.Workloads[i]
		pods.Waiting += w.Waiting
		pods.Starting += w.Starting
		pods.Running += w.Running
		pods.Finished += w.Finished
		pods.Stopping += w.Stopping
	}
	return pods
}

// Workload returns the named one; one without pods if it has none.
func (v *View) Workload(name string) Workload {
	for i := range v.Workloads {
		if v.Workloads[i].Name == name {
			return v.Workloads[i]
		}
	}
	return Workload{Name: name}
}

// Count returns how many machines are in a state.
func (v *View) Count(state State) int {
	n := 0
	for i := range v.Machines {
		if v.Machines[i].State == state {
			n++
		}
	}
	return n
}

// String says in one line what there is.
func (v *View) String() string {
	pods := v.Totals()
	text := fmt.Sprintf("%d of %d nodes ready, $%.3f/h; pods:", v.Count(Ready), len(v.Machines), v.Price)
	for _, c := range []struct {
		n    int
		what string
	}{{pods.Waiting, "waiting"}, {pods.Starting, "starting"}, {pods.Running, "running"}, {pods.Finished, "finished"}, {pods.Stopping, "stopping"}} {
		if c.n > 0 {
			text += fmt.Sprintf(" %d %s", c.n, c.what)
		}
	}
	if pods.Pods() == 0 {
		text += " none"
	}
	return text
}
