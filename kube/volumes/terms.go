// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// term is a conjunction. Of a list of terms one must hold; an empty list
// demands nothing.
type term = model.Requirements

func (s *Store) requirement(key string, operator model.Operator, values []string) model.Requirement {
	canonical := make([]string, len(values))
	for i, v := range values {
		_, canonical[i] = s.labels.Canonical(key, v)
	}
	return model.NewRequirement(s.labels.CanonicalKey(key), operator, canonical...)
}

// affinity returns the terms of a volume's node affinity. An empty term matches
// nothing and is left out. A term that only names a host holds everywhere,
// because host names are ignored.
func (s *Store) affinity(list []corev1.NodeSelectorTerm, anyHost bool) []term {
	var out []term
	for _, t := range list {
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
			continue
		}
		next := term{}
		for _, e := range t.MatchExpressions {
			if !anyHost || e.Key != corev1.LabelHostname {
				next = next.And(s.requirement(e.Key, model.Operator(e.Operator), e.Values))
			}
		}
		for _, f := range t.MatchFields {
			if !anyHost {
				next = next.And(model.NewRequirement(model.FieldName, model.Operator(f.Operator), f.Values...))
			}
		}
		out = append(out, next)
	}
	return tidy(out)
}

// topologies returns the terms of allowedTopologies, and the keys they use.
func (s *Store) topologies(list []corev1.TopologySelectorTerm) (terms []term, keys []string) {
	for _, t := range list {
		if len(t.MatchLabelExpressions) == 0 { // matches nothing
			continue
		}
		next := term{}
		for _, e := range t.MatchLabelExpressions {
			keys = append(keys, e.Key)
			next = next.And(s.requirement(e.Key, model.In, e.Values))
		}
		terms = append(terms, next)
	}
	return tidy(terms), keys
}

// zones returns the terms of a volume's zone labels, which the scheduler checks
// in addition to the node affinity.
func (s *Store) zones(labels map[string]string) []term {
	var out term
	for _, key := range []string{
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	} {
		if value, ok := labels[key]; ok {
			out = out.And(s.requirement(key, model.In, strings.Split(value, zonesOfOneVolume)))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return []term{out}
}

// both returns the terms that hold where one of a and one of b does:
// combinations that contradict themselves are left out, unless all do.
func both(a, b []term) []term {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var all, possible []term
	for _, x := range a {
		for _, y := range b {
			all = append(all, x.And(y...))
			if _, ok := x.Intersects(y); ok {
				possible = append(possible, all[len(all)-1])
			}
		}
	}
	if len(possible) == 0 {
		return tidy(all)
	}
	return tidy(possible)
}

// tidy returns equivalent terms in a fixed order and, where easy, fewer of
// them: equal terms once, terms of one label merged, and a single empty term if
// any term is empty.
func tidy(terms []term) []term {
	if len(terms) == 0 {
		return nil
	}
	if slices.ContainsFunc(terms, func(t term) bool { return len(t) == 0 }) {
		return []term{{}}
	}
	if r, ok := oneLabel(terms); ok {
		return []term{{r}}
	}
	slices.SortFunc(terms, func(a, b term) int { return strings.Compare(text(a), text(b)) })
	return slices.CompactFunc(terms, func(a, b term) bool { return text(a) == text(b) })
}

// text is equal for equal terms only.
func text(t term) string {
	var b strings.Builder
	for _, r := range t {
		fmt.Fprintf(&b, "%s %q\n", r, r.Values)
	}
	return b.String()
}

// oneLabel merges terms that each list values of the same label into one
// requirement.
func oneLabel(terms []term) (model.Requirement, bool) {
	var values []string
	for _, t := range terms {
		if len(t) != 1 || t[0].Key != terms[0][0].Key || t[0].Operator() != model.In {
			return model.Requirement{}, false
		}
		values = append(values, t[0].Values...)
	}
	return model.NewRequirement(terms[0][0].Key, model.In, values...), true
}
