// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// State is how far a node is in its life.
type State string

// The states of a node, in the order they are passed through. NotReady interrupts
// Ready.
const (
	Launching State = "launching" // there is a NodeClaim and no instance yet
	Booting   State = "booting"   // there is an instance and no node that takes pods yet
	Ready     State = "ready"
	NotReady  State = "not ready"
	Removing  State = "removing"
)

// View is what there is at one moment.
type View struct {
	Now       time.Time  `json:"now"`
	Nodes     []Node     `json:"nodes"`               // by pool and name
	Workloads []Workload `json:"workloads,omitempty"` // by namespace and name
	Pools     []Pool     `json:"nodePools,omitempty"` // by name
	Cost      float64    `json:"costPerHour"`         // dollars, of all nodes
	Unpriced  int        `json:"unpriced,omitempty"`  // nodes whose price is not known: they count as 0
	Warnings  []Warning  `json:"warnings,omitempty"`  // oldest first
}

// Node is a NodeClaim, its Node, or both.
type Node struct {
	Name         string    `json:"name"` // of the Node, else of the NodeClaim
	Claim        string    `json:"nodeClaim,omitempty"`
	Pool         string    `json:"nodePool,omitempty"`
	Type         string    `json:"instanceType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	Price        float64   `json:"pricePerHour"`
	Priced       bool      `json:"-"`
	State        State     `json:"state"`
	Since        time.Time `json:"since"`         // of its creation; if Removing, of its deletion
	Why          string    `json:"why,omitempty"` // it was launched, or is removed
	Room         Amount    `json:"allocatable"`
	Used         Amount    `json:"requested"`
	Pods         int       `json:"pods"`
}

// key tells nodes apart from one View to the next.
func (n *Node) key() string { return cmp.Or(n.Claim, n.Name) }

// Amount is of the two resources that every node has.
type Amount struct {
	MilliCPU int64 `json:"milliCPU"`
	Memory   int64 `json:"memoryBytes"`
}

func (a *Amount) add(b Amount) { a.MilliCPU, a.Memory = a.MilliCPU+b.MilliCPU, a.Memory+b.Memory }

func amountOf(list corev1.ResourceList) Amount {
	return Amount{list.Cpu().MilliValue(), list.Memory().Value()}
}

// Workload counts the pods of one owner: a Deployment, a Job, or a lone pod itself.
type Workload struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Waiting   int    `json:"waiting,omitempty"`  // without a node
	Starting  int    `json:"starting,omitempty"` // bound, not running yet
	Running   int    `json:"running,omitempty"`
	Finished  int    `json:"finished,omitempty"` // succeeded or failed
	Stopping  int    `json:"stopping,omitempty"` // being deleted; not counted above
	// First is the name of a pod that waits; "" = none does.
	First string `json:"firstWaiting,omitempty"`
	// Why is the latest event about why the pods wait.
	Why string `json:"why,omitempty"`
}

func (w *Workload) pods() int { return w.Waiting + w.Starting + w.Running + w.Finished + w.Stopping }

// Pool is a NodePool and what it owns.
type Pool struct {
	Name   string              `json:"name"`
	Ready  bool                `json:"ready"`
	Reason string              `json:"reason,omitempty"` // why it is not ready
	Limits corev1.ResourceList `json:"limits,omitempty"`
	Usage  corev1.ResourceList `json:"usage,omitempty"` // capacity of its nodes that are not being removed
}

// Warning is a Warning event that Karpenter published. Equal ones are one.
type Warning struct {
	At      time.Time `json:"at"`
	Object  string    `json:"object"` // kind/name
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	key     string
}

// Prices returns the dollars per hour of what a node is, and whether they are known.
type Prices func(instanceType, zone, capacityType string) (float64, bool)

// Of returns what there is at the time. Prices may be nil.
func Of(o *Objects, prices Prices, now time.Time) View {
	v := View{Now: now, Nodes: nodes(o, prices), Pools: pools(o), Warnings: warnings(o)}
	v.place(o)
	v.account()
	reasons := newReasons(o)
	for i := range v.Nodes {
		v.Nodes[i].Why = reasons.of(&v.Nodes[i])
	}
	return v
}

// hourly writes what the nodes cost, "$?/h" if no price is known.
func (v *View) hourly() string {
	if v.Cost == 0 && v.Unpriced > 0 {
		return "$?/h"
	}
	return fmt.Sprintf("$%.3f/h", v.Cost)
}

// account sums up the nodes.
func (v *View) account() {
	usage := map[string]corev1.ResourceList{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		v.Cost += n.Price
		if !n.Priced && n.Type != "" {
			v.Unpriced++
		}
		if n.Pool == "" || n.State == Removing {
			continue
		}
		sum := usage[n.Pool]
		if sum == nil {
			sum = corev1.ResourceList{}
			usage[n.Pool] = sum
		}
		for name, more := range map[corev1.ResourceName]resource.Quantity{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(n.Room.MilliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(n.Room.Memory, resource.BinarySI),
			nodesResource:         *resource.NewQuantity(1, resource.DecimalSI),
		} {
			total := sum[name].DeepCopy()
			total.Add(more)
			sum[name] = total
		}
	}
	for i := range v.Pools {
		if p := &v.Pools[i]; p.Usage == nil {
			p.Usage = usage[p.Name]
		}
	}
}

// place adds the pods to their nodes and workloads.
func (v *View) place(o *Objects) {
	on := make(map[string]*Node, len(v.Nodes))
	for i := range v.Nodes {
		on[v.Nodes[i].Name] = &v.Nodes[i]
	}
	why := map[string]string{} // by namespace/name of the pod
	for _, e := range o.Events {
		if e.Reason == failedScheduling && e.InvolvedObject.Kind == "Pod" {
			why[e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name] = e.Message
		}
	}
	workloads := map[string]*Workload{}
	for _, p := range o.Pods {
		name := workloadOf(p)
		w := workloads[p.Namespace+"/"+name]
		if w == nil {
			w = &Workload{Namespace: p.Namespace, Name: name}
			workloads[p.Namespace+"/"+name] = w
		}
		w.count(p, why)
		if n := on[p.Spec.NodeName]; n != nil && p.Spec.NodeName != "" && !finished(p) {
			n.Pods++
			n.Used.add(requestsOf(p))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(workloads)) {
		v.Workloads = append(v.Workloads, *workloads[key])
	}
}

func (w *Workload) count(p *corev1.Pod, why map[string]string) {
	switch {
	case p.DeletionTimestamp != nil:
		w.Stopping++
	case finished(p):
		w.Finished++
	case p.Spec.NodeName == "":
		w.Waiting++
		if w.First == "" || p.Name < w.First {
			w.First = p.Name
		}
		w.Why = cmp.Or(why[p.Namespace+"/"+p.Name], w.Why)
	case p.Status.Phase == corev1.PodRunning:
		w.Running++
	default:
		w.Starting++
	}
}

// Totals sums allocatable and requested resources over nodes, and pods over
// workloads.
func (v *View) Totals() (room, used Amount, pods Workload) {
	for i := range v.Nodes {
		room.add(v.Nodes[i].Room)
		used.add(v.Nodes[i].Used)
	}
	for i := range v.Workloads {
		w := &v.Workloads[i]
		pods.Waiting += w.Waiting
		pods.Starting += w.Starting
		pods.Running += w.Running
		pods.Finished += w.Finished
		pods.Stopping += w.Stopping
	}
	return room, used, pods
}

// Count returns how many nodes are in a state.
func (v *View) Count(state State) int {
	n := 0
	for i := range v.Nodes {
		if v.Nodes[i].State == state {
			n++
		}
	}
	return n
}

// Waiting returns the workloads of which pods wait for a node.
func (v *View) Waiting() []Workload {
	var out []Workload
	for _, w := range v.Workloads {
		if w.Waiting > 0 {
			out = append(out, w)
		}
	}
	return out
}
