// SPDX-License-Identifier: Apache-2.0

package replay

import (
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

// schedule binds the pods that have just come as kube-scheduler does: each to the emptiest node
// that takes it. It reports whether some are left: no node takes them, or their place depends
// on more than the node.
func (r *run) schedule() (left bool) {
	var free []*pod
	for _, p := range r.newcomers {
		switch {
		case p.gone || p.node != nil || p.to != nil:
		case ruled(p.shape) || r.h.repelled(p.object):
			left = true
		default:
			free = append(free, p)
		}
	}
	if r.newcomers = nil; len(free) == 0 {
		return left
	}
	s := r.world.Snapshot(r.now)
	rows := slices.DeleteFunc(r.rows.Nodes(s), func(row fit.NodeRow) bool {
		n := r.node(row.Name)
		return row.Deleting || row.Closed || n == nil && row.Claim != "" || n != nil && (!n.ready || n.leaving)
	})
	for i := range rows {
		n := r.node(rows[i].Name)
		if n == nil {
			continue
		}
		for _, p := range n.expects {
			if !p.gone && p.to == n && p.node != n {
				rows[i].Free = rows[i].Free.Minus(p.shape.Requests).Max(nil)
			}
		}
	}
	for _, p := range free {
		best, most := -1, -1.0
		for i := range rows {
			row := &rows[i]
			if !p.shape.Requests.Fits(row.Free) || !row.Takes(p.shape) {
				continue
			}
			if free := emptiness(row); free > most {
				best, most = i, free
			}
		}
		if best < 0 {
			left = true
			continue
		}
		row := &rows[best]
		row.Free = row.Free.Minus(p.shape.Requests)
		if n := r.node(row.Name); n != nil {
			r.bind(p, n)
		} else {
			r.settle(p, row.Name)
		}
	}
	return left
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
