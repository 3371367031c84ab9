// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/cloud/ec2"
	"karpenter/cloud/kwok"
)

// Region is where the prices are from.
const Region = "us-east-1"

// Start is the time in which everything happens.
func Start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// Workload is one situation.
type Workload struct {
	Name  string
	About string // one line
	Pods  int    // that need a node

	Entries     []kwok.Entry
	Pools       []*v1.NodePool
	Daemons     []*appsv1.DaemonSet
	Machines    []Machine
	Deployments []Deployment  // whose pods are pending
	Evicted     []*corev1.Pod // pending, too

	// One asks for the time of a second decision: everything but one pod of
	// the first deployment has been decided and bound already.
	One bool
	// Short workloads are the ones of a short run.
	Short bool
	// UpstreamCap is how long upstream may take; past it the pods it has not
	// come to stay pending.
	UpstreamCap time.Duration
}

// Machine is a node that is there already.
type Machine struct {
	Node  *corev1.Node
	Claim *v1.NodeClaim
	Bound []*corev1.Pod
}

// Pending yields the pods that need a node, in the same order every time. The
// objects are the caller's.
func (w *Workload) Pending() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for i := range w.Deployments {
			d := &w.Deployments[i]
			for n := range d.Replicas {
				if !yield(d.Pod(n)) {
					return
				}
			}
		}
		for _, p := range w.Evicted {
			if !yield(p.DeepCopy()) {
				return
			}
		}
	}
}

// Change is what became of nodes and running pods.
type Change struct {
	Gone, Added []Machine
	Moved       []*corev1.Pod // to nodes that are neither; bound there
}

// Namespaces returns the namespaces that have pods, sorted.
func (w *Workload) Namespaces() []string {
	all := map[string]bool{namespace: true}
	for _, d := range w.Deployments {
		if d.Namespace != "" {
			all[d.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Uncapped is the time upstream gets where it is to be let finish.
const Uncapped = 20 * time.Minute

// OwnCap is the time upstream's provisioner gives its scheduler.
const OwnCap = time.Minute

// Names returns the names of all workloads, in the order they are run, with
// whether each belongs to a short run.
func Names() []string {
	var out []string
	for _, r := range recipes() {
		out = append(out, r.name)
	}
	return out
}

// New generates the workload of that name.
func New(name string) (*Workload, error) {
	for i, r := range recipes() {
		if r.name != name {
			continue
		}
		w, err := Empty(name)
		if err != nil {
			return nil, err
		}
		w.About, w.Short = r.about, r.short
		r.make(w, rand.New(rand.NewPCG(20260101, uint64(i))))
		w.Count()
		return w, nil
	}
	return nil, fmt.Errorf("no workload %q", name)
}

// Empty returns a workload with the price list and nothing else.
func Empty(name string) (*Workload, error) {
	entries, err := ec2.KWOKTypes(Region)
	if err != nil {
		return nil, fmt.Errorf("price list: %w", err)
	}
	return &Workload{Name: name, Entries: entries, UpstreamCap: Uncapped}, nil
}

// Count counts the pending pods.
func (w *Workload) Count() {
	w.Pods = 0
	for _, d := range w.Deployments {
		w.Pods += d.Replicas
	}
}

// Short reports whether the workload belongs to a short run.
func Short(name string) bool {
	for _, r := range recipes() {
		if r.name == name {
			return r.short
		}
	}
	return false
}
