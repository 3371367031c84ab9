// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/model"
)

// outcome is what a pass has planned for the pods of one buffer, counted.
type outcome struct {
	there    int    // on nodes that run pods
	starting int    // on nodes that are on their way
	launched int    // on nodes this pass launches
	unplaced int    // nowhere
	why      string // of the first that is unplaced
}

func (o outcome) total() int { return o.there + o.starting + o.launched + o.unplaced }

// fits reports whether all pods fit nodes that run pods already.
func (o outcome) fits() bool { return o.there == o.total() }

// String prints the counts on one line.
func (o outcome) String() string {
	if o.fits() {
		return fmt.Sprintf("capacity for all %d pods is available", o.total())
	}
	parts := []string{fmt.Sprintf("capacity for %d of %d pods is available", o.there, o.total())}
	if o.starting > 0 {
		parts = append(parts, fmt.Sprintf("%d fit on nodes that are starting", o.starting))
	}
	if o.launched > 0 {
		parts = append(parts, fmt.Sprintf("%d on nodes being launched", o.launched))
	}
	if o.unplaced > 0 {
		parts = append(parts, fmt.Sprintf("%d nowhere: %s", o.unplaced, o.why))
	}
	return strings.Join(parts, "; ")
}

// outcomesOf counts, by buffer, what the plan says of pods that stand in.
func outcomesOf(s *model.Snapshot, plan *model.Plan) map[string]outcome {
	out := map[string]outcome{}
	count := func(p model.Pod, add func(*outcome)) {
		if p.Buffer != "" && !strings.Contains(p.Buffer, " ") { // a ProvisioningRequest's has one
			o := out[p.Buffer]
			add(&o)
			out[p.Buffer] = o
		}
	}
	for _, p := range plan.Placements {
		count(p.Pod, func(o *outcome) {
			if runs(s, p.Node) {
				o.there++
			} else {
				o.starting++
			}
		})
	}
	for i := range plan.Launches {
		for _, p := range plan.Launches[i].Pods {
			count(p, func(o *outcome) { o.launched++ })
		}
	}
	for _, v := range plan.Verdicts {
		for _, p := range v.Pods {
			count(p, func(o *outcome) {
				if o.unplaced == 0 {
					o.why = v.String()
				}
				o.unplaced++
			})
		}
	}
	return out
}

// runs reports whether the node runs pods already.
func runs(s *model.Snapshot, node string) bool {
	i, found := slices.BinarySearchFunc(s.Nodes, node, func(n model.Node, name string) int { return strings.Compare(n.Name, name) })
	return found && s.Nodes[i].Initialized
}

// Planned records what a pass of provisioning has decided. It does not block.
func (r *Reconciler) Planned(s *model.Snapshot, plan *model.Plan) {
	next := outcomesOf(s, plan)
	r.mu.Lock()
	defer r.mu.Unlock()
	for buffer, o := range next {
		if last, known := r.outcomes[buffer]; (!known || last != o) && r.queue != nil {
			r.queue.Add(request(buffer))
		}
	}
	r.outcomes = next
}

// request asks for the buffer, namespace/name, to be looked at.
func request(buffer string) reconcile.Request {
	namespace, name, _ := strings.Cut(buffer, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// outcome returns what the latest pass has planned for the buffer, and false
// when it knew of no pods of it.
func (r *Reconciler) outcome(buffer string) (outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, known := r.outcomes[buffer]
	return o, known
}
