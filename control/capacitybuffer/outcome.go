// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"karpenter/kube/standins"
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
	standins.Fates(s, plan, func(p model.Pod, f standins.Fate) {
		if strings.Contains(p.Buffer, " ") { // a ProvisioningRequest
			return
		}
		o := out[p.Buffer]
		switch {
		case f.Why != nil:
			if o.unplaced == 0 {
				o.why = f.Why.String()
			}
			o.unplaced++
		case f.There:
			o.there++
		case f.Launched:
			o.launched++
		default:
			o.starting++
		}
		out[p.Buffer] = o
	})
	return out
}

// Planned records what a pass of provisioning has decided. It does not block.
func (r *Reconciler) Planned(s *model.Snapshot, plan *model.Plan) {
	next := outcomesOf(s, plan)
	r.mu.Lock()
	defer r.mu.Unlock()
	for buffer, o := range next {
		if last, known := r.outcomes[buffer]; !known || last != o {
			for _, other := range r.mates(buffer) {
				r.LookAt(keyOf(other))
			}
		}
	}
	r.outcomes = next
}

// keyOf returns the key of the buffer, namespace/name.
func keyOf(buffer string) types.NamespacedName {
	namespace, name, _ := strings.Cut(buffer, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// outcome returns what the latest pass has planned for the buffer, and false
// when it knew of no pods of it.
func (r *Reconciler) outcome(buffer string) (outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, known := r.outcomes[buffer]
	return o, known
}
