// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// site is a node that exists or that the plan launches, with the pods on it.
type site struct {
	name   string
	node   *corev1.Node // as it is, or the first of the machines it can become
	labels map[string]string
	before []*asked // pods bound before the plan
	pods   []*asked // pods the plan puts here
}

// could notes a machine the site can become. Labels in which the machines
// differ are not settled.
func (s *site) could(n *corev1.Node, keys []string) {
	first := s.node == nil
	if first {
		s.node, s.labels = n, map[string]string{}
	}
	for _, key := range keys {
		value, ok := n.Labels[key]
		old, had := s.labels[key]
		switch {
		case first && ok:
			s.labels[key] = value
		case !first && (had != ok || old != value):
			delete(s.labels, key)
		}
	}
}

// domain returns the domain of the topology key, which is named for the value of the
// label, or "" if it is not settled or the node has no such label.
func (s *site) domain(key string) string {
	if key == corev1.LabelHostname {
		return s.name
	}
	if value, ok := s.labels[key]; ok {
		return key + "=" + value
	}
	return ""
}

// term is a required constraint between pods. Constraints of equal text are one
// term.
type term struct {
	id       int
	kind     termKind
	key      string
	skew     int32
	domains  int32 // the least number of them
	affinity bool  // domains count only if the node affinity of the pod matches
	taints   bool  // domains count only if the pod tolerates the taints
	selects  labels.Selector
	spaces   []string // namespaces; nil = all

	counts map[string]int // selected pods by domain, new ones included
	total  int
}

// peers is what pods demand of each other.
type peers struct {
	known   map[string]*term // by text
	all     []*term
	keys    []string // topology keys of all
	groups  []group
	grouped map[string]int             // groups by text
	unsure  []string                   // what can't be judged
	domains map[string]map[string]bool // that count for a term, by the text of what decides it
}

type termKind string

const (
	spreadTerm   termKind = "spread"
	affinityTerm termKind = "affinity"
	antiTerm     termKind = "anti-affinity"
)

// matches reports whether the term selects the pod.
func (t *term) matches(p *corev1.Pod) bool {
	return (t.spaces == nil || slices.Contains(t.spaces, p.Namespace)) && t.selects.Matches(labels.Set(p.Labels))
}

// terms returns the required constraints of the pod. What the judge can't check
// is a fault.
func (j *Judge) terms(p *corev1.Pod) []*term {
	var out []*term
	carry := func(t *term) { // once, however often the pod says it
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		t := term{kind: spreadTerm, key: c.TopologyKey, skew: c.MaxSkew, affinity: true}
		if c.MinDomains != nil {
			t.domains = *c.MinDomains
		}
		if c.NodeAffinityPolicy != nil {
			t.affinity = *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
		}
		t.taints = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
		t.spaces = []string{p.Namespace}
		carry(j.term(t, p, alike(c.LabelSelector, c.MatchLabelKeys, p), false))
	}
	for _, a := range affinityTerms(p) {
		carry(j.peerTerm(affinityTerm, p, &a))
	}
	for _, a := range antiAffinityTerms(p) {
		carry(j.peerTerm(antiTerm, p, &a))
	}
	return out
}

// peerTerm returns the term of pod affinity or anti-affinity.
func (j *Judge) peerTerm(kind termKind, p *corev1.Pod, a *corev1.PodAffinityTerm) *term {
	t := term{kind: kind, key: a.TopologyKey, spaces: a.Namespaces}
	all := a.NamespaceSelector != nil && len(a.NamespaceSelector.MatchLabels)+len(a.NamespaceSelector.MatchExpressions) == 0
	switch {
	case all:
		t.spaces = nil
	case len(t.spaces) == 0:
		t.spaces = []string{p.Namespace}
	}
	unknown := a.NamespaceSelector != nil && !all || len(a.MismatchLabelKeys) > 0
	return j.term(t, p, alike(a.LabelSelector, a.MatchLabelKeys, p), unknown)
}

// alike returns the selector of those it selects that have the values of these labels
// which the pod has.
func alike(selects *metav1.LabelSelector, keys []string, p *corev1.Pod) *metav1.LabelSelector {
	if selects == nil {
		return nil
	}
	out := selects.DeepCopy()
	for _, key := range keys {
		if value, ok := p.Labels[key]; ok {
			out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
		}
	}
	return out
}

// term returns the one term of that text.
func (j *Judge) term(t term, p *corev1.Pod, selects *metav1.LabelSelector, unknown bool) *term {
	text, err := json.Marshal([]any{t.kind, t.key, t.skew, t.domains, t.affinity, t.taints, selects, t.spaces})
	if err != nil {
		panic(err) // plain data
	}
	if old := j.known[string(text)]; old != nil {
		return old
	}
	if unknown {
		j.unsure = append(j.unsure, "the judge does not know all fields of the constraints of pod "+Key(p))
	}
	selector, err := metav1.LabelSelectorAsSelector(selects)
	if err != nil {
		j.unsure = append(j.unsure, "selector of pod "+Key(p)+": "+err.Error())
		selector = labels.Nothing()
	}
	t.id, t.selects = len(j.all), selector
	j.known[string(text)], j.all = &t, append(j.all, &t)
	if !slices.Contains(j.keys, t.key) {
		j.keys = append(j.keys, t.key)
	}
	return &t
}

func affinityTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func antiAffinityTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
