// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"karpenter/world"
)

// budgets are the PodDisruptionBudgets of a run.
type budgets struct {
	all map[string]*guard   // by namespace/name
	in  map[string][]*guard // by namespace
}

// guard is a PodDisruptionBudget in a run.
type guard struct {
	object   *policyv1.PodDisruptionBudget
	value    world.DisruptionBudget
	selector labels.Selector
	expected int // pods that it selects
	healthy  int // of those, that are ready
	dirty    bool
}

// allowed is how many of the pods may be evicted now.
func (g *guard) allowed() int {
	least := 0
	scaled := func(v *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, g.expected, true)
		if err != nil {
			return g.expected
		}
		return n
	}
	switch spec := &g.object.Spec; {
	case spec.MaxUnavailable != nil:
		least = g.expected - scaled(spec.MaxUnavailable)
	case spec.MinAvailable != nil:
		least = scaled(spec.MinAvailable)
	default:
		return 0
	}
	return max(min(g.healthy-least, g.healthy), 0)
}

// guard records a PodDisruptionBudget.
func (r *run) guard(o *policyv1.PodDisruptionBudget, deleted bool) {
	key := o.Namespace + "/" + o.Name
	old := r.budgets.all[key]
	if old != nil && !deleted && old.object.Generation == o.Generation && old.object.UID == o.UID {
		return // only its status has changed, which the run computes itself
	}
	if old != nil {
		for _, p := range r.load.pods {
			p.guards = slices.DeleteFunc(p.guards, func(g *guard) bool { return g == old })
		}
		delete(r.budgets.all, key)
		r.budgets.in[o.Namespace] = slices.DeleteFunc(r.budgets.in[o.Namespace], func(g *guard) bool { return g == old })
	}
	if deleted {
		r.world.DeleteDisruptionBudget(o.Namespace, o.Name)
		return
	}
	g := &guard{object: o, value: r.convert.DisruptionBudget(o), selector: labels.Nothing(), dirty: true}
	if s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector); err == nil {
		g.selector = s
	}
	r.budgets.all[key] = g
	r.budgets.in[o.Namespace] = append(r.budgets.in[o.Namespace], g)
	for _, p := range r.load.pods {
		if p.object.Namespace == o.Namespace && !p.leaving {
			g.count(p)
		}
	}
}

// count adds the pod to the PodDisruptionBudget if it selects the pod.
func (g *guard) count(p *pod) {
	if !g.selector.Matches(labels.Set(p.object.Labels)) {
		return
	}
	p.guards = append(p.guards, g)
	g.expected++
	if p.ready {
		g.healthy++
	}
	g.dirty = true
}

// settle updates the PodDisruptionBudgets whose pods have changed.
func (b *budgets) settle(w *world.World) {
	for _, g := range b.all {
		if !g.dirty {
			continue
		}
		g.dirty = false
		g.value.Allowed = g.allowed()
		w.SetDisruptionBudget(g.value)
	}
}

// unguard removes the pod from its PodDisruptionBudgets.
func (p *pod) unguard() {
	for _, g := range p.guards {
		g.expected--
		if p.ready {
			g.healthy--
		}
		g.dirty = true
	}
	p.guards = nil
}
