// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"karpenter/model"
	"karpenter/solve/fit"
)

// repulsion is a required anti-affinity of some pods.
type repulsion struct {
	namespaces []string // nil = all
	selector   labels.Selector
}

// repulsions are all of the recording, each once.
func repulsions(demands []*demand) []repulsion {
	var out []repulsion
	seen := map[string]bool{}
	for _, d := range demands {
		a := d.pod.Spec.Affinity
		if a == nil || a.PodAntiAffinity == nil {
			continue
		}
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			t := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
			key := fmt.Sprint(d.pod.Namespace, t.Namespaces, t.NamespaceSelector, metav1.FormatLabelSelector(t.LabelSelector))
			if seen[key] {
				continue
			}
			seen[key] = true
			next := repulsion{namespaces: t.Namespaces, selector: labels.Nothing()}
			if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
				next.namespaces = []string{d.pod.Namespace}
			} else if t.NamespaceSelector != nil {
				next.namespaces = nil
			}
			if s, err := metav1.LabelSelectorAsSelector(t.LabelSelector); err == nil {
				next.selector = s
			}
			out = append(out, next)
		}
	}
	return out
}

// repelled reports whether some pods must not share a domain with the pod.
func (h *history) repelled(p *corev1.Pod) bool {
	return slices.ContainsFunc(h.repulsions, func(r repulsion) bool {
		return (r.namespaces == nil || slices.Contains(r.namespaces, p.Namespace)) && r.selector.Matches(labels.Set(p.Labels))
	})
}

// ruled reports whether the place of a pod depends on more than the node.
func ruled(s *model.Shape) bool {
	return len(s.Spread)+len(s.PodTerms)+len(s.HostPorts)+len(s.Volumes)+len(s.VolumeTerms)+len(s.Preferences)+len(s.Refused) > 0
}

// scheduler is kube-scheduler in a run.
type scheduler struct {
	waiting []*pod // that look for a node, and some that no longer do
	opened  bool   // capacity may have become free since it tried all of them
	rows    fit.Memory
}

// place is a node that takes pods, as the scheduler sees it.
type place struct {
	fit.NodeRow
	node *node           // nil = it is of no NodePool
	kept model.Resources // of what is free, for the pods that are nominated to it
}

// places returns the nodes that take pods.
func (r *run) places() []place {
	var out []place
	for _, row := range r.scheduler.rows.Nodes(r.world.Snapshot(r.now)) {
		at := place{NodeRow: row, node: r.fleet.node(row.Name)}
		if row.Deleting || row.Closed || at.node == nil && row.Claim != "" || at.node != nil && (!at.node.ready || at.node.leaving) {
			continue
		}
		if at.node != nil && r.h.nominates {
			for _, p := range at.node.expects {
				if p.comes(at.node) {
					at.kept = at.kept.Plus(p.shape.Requests)
				}
			}
		}
		out = append(out, at)
	}
	return out
}

// schedule binds pods that wait as kube-scheduler does, one after the other. It
// reports whether a new plan is needed: for a pod that is not planned yet, or
// whose planned place another pod may have taken.
func (r *run) schedule() (left bool) {
	r.scheduler.waiting = slices.DeleteFunc(r.scheduler.waiting, func(p *pod) bool { return p.gone || p.object.Spec.NodeName != "" })
	turn := slices.DeleteFunc(slices.Clone(r.scheduler.waiting), func(p *pod) bool { return p.tried && !r.scheduler.opened })
	if r.scheduler.opened = false; len(turn) == 0 {
		return false
	}
	slices.SortFunc(turn, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(b.shape.Priority, a.shape.Priority), cmp.Compare(a.turn, b.turn))
	})
	places := r.places()
	for _, p := range turn {
		at := r.choose(p, places)
		switch {
		case at == nil && !p.tried && p.to == nil:
			left = true
		case at == nil:
		case at.node == nil:
			r.settle(p, at.Name)
		default:
			left = left || at.node != p.to // it may have taken another's place, and its own is free
			r.bind(p, at.node)
		}
		p.tried = true
	}
	return left
}

// choose returns the node that the scheduler binds the pod to, and reserves the capacity: the nominated node,
// or else the emptiest node that the pod fits. A pod with rules about other pods is bound to its planned node
// if it still fits there. choose returns nil if there is no node.
func (r *run) choose(p *pod, places []place) *place {
	ruled := ruled(p.shape) || r.h.repelled(p.object)
	var best *place
	for i := range places {
		at := &places[i]
		planned := at.node != nil && at.node == p.to
		free := at.Free.Minus(at.kept)
		if planned && r.h.nominates {
			free = free.Plus(p.shape.Requests)
		}
		switch {
		case ruled && !planned || !p.shape.Requests.Fits(free) || !at.Takes(p.shape):
		case planned && r.h.nominates:
			at.Free, at.kept = at.Free.Minus(p.shape.Requests), at.kept.Minus(p.shape.Requests)
			return at
		case best == nil || emptiness(&at.NodeRow) > emptiness(&best.NodeRow):
			best = at
		}
	}
	if best != nil {
		best.Free = best.Free.Minus(p.shape.Requests)
	}
	return best
}

// emptiness is the share of CPU and memory that is free, on average.
func emptiness(row *fit.NodeRow) float64 {
	sum := 0.0
	for _, i := range []int{model.CPU, model.Memory} {
		if all := row.Allocatable.At(i); all > 0 {
			sum += float64(row.Free.At(i)) / float64(all)
		}
	}
	return sum
}
