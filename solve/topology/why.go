// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// Reason says which rule keeps pods from a place, and the smallest change that
// would help.
type Reason struct {
	Constraint, Hint string

	Near *Near // of pod affinity: where those pods are; nil = the reason is another
}

// Near is where the pods are that others have affinity to. What keeps these from there
// depends on the nodes that are planned, too.
type Near struct {
	Keys   []int      // of the terms
	Values [][]string // by key, but for the hostname: the domains with such pods, as far as they are settled
	Sites  []int      // the nodes of the Snapshot with such pods, if a key is the hostname
	Kinds  []int      // the pending pods that are such
}

// Why returns the rule that keeps the kind from most of the places, which are
// all there are for it. It reports false when rules leave one of them.
func (st *State) Why(kind int, places []Place) (Reason, bool) {
	k := &st.kinds[kind]
	var best Reason
	most, blocked := 0, make([]bool, len(places))
	weigh := func(blocks func(Place) bool, reason func() Reason) {
		n := 0
		for i, p := range places {
			if blocks(p) {
				n++
				blocked[i] = true
			}
		}
		if n > most {
			best, most = reason(), n
		}
	}
	for _, a := range k.affinity {
		weigh(func(p Place) bool { return !a.allows(p) }, func() Reason { return st.whyAffinity(a) })
	}
	for _, t := range k.empties {
		if t.key != Hostname {
			occupied := func(d int) bool { return t.at(d) > 0 }
			weigh(func(p Place) bool { return slices.ContainsFunc(p[t.key], occupied) }, func() Reason { return st.whyApart(t) })
		}
	}
	for i := range k.spreads {
		if s := &k.spreads[i]; s.tally.key != Hostname {
			weigh(func(p Place) bool { return !s.allows(p) }, func() Reason { return st.whySpread(k.lacking(s, places), places) })
		}
	}
	if slices.Contains(blocked, false) && st.Joins(kind) {
		return st.whyAffinity(k.affinity[slices.IndexFunc(k.affinity, (*affinity).joins)]), true
	}
	return best, !slices.Contains(blocked, false)
}

// lacking returns s or, if all spread constraints exclude all of the places because these lack a label, the one
// on that label.
func (k *rules) lacking(s *spread, places []Place) *spread {
	for i := range k.spreads {
		t := k.spreads[i].tally
		if t.key != Hostname && !slices.ContainsFunc(places, func(p Place) bool { return len(p[t.key]) == 1 }) {
			return &k.spreads[i]
		}
	}
	return s
}

func (st *State) whySpread(s *spread, places []Place) Reason {
	key := st.Keys[s.tally.key]
	r := Reason{Constraint: fmt.Sprintf("spread over %s with maxSkew %d", key, s.MaxSkew)}
	settled := func(p Place) bool { return s.tally.filter.settled(p) }
	least := s.tally.fewest(s.MinDomains)
	switch {
	case !slices.ContainsFunc(places, settled):
		r.Hint = "no node would have every label the pod is spread over; add " + key + " to the labels or requirements of the NodePool"
	case s.tally.known < s.MinDomains:
		r.Constraint += fmt.Sprintf(" and minDomains %d", s.MinDomains)
		r.Hint = fmt.Sprintf("there are %d domains for it; lower minDomains, or have a NodePool allow more", s.tally.known)
	default:
		var low []string
		for d := range st.domains[s.tally.key].names {
			if s.tally.knows(d) && s.tally.low(d) == least {
				low = append(low, st.Value(s.tally.key, d))
			}
		}
		r.Hint = fmt.Sprintf("the fewest of the pods, %d, are in %s, which takes no more; free capacity there, raise maxSkew, or use ScheduleAnyway", least, List(low))
	}
	return r
}

func (st *State) whyAffinity(a *affinity) Reason {
	var keys []string
	near := &Near{Kinds: st.addersOf(a.tallies[0])}
	for i, t := range a.tallies {
		if keys = append(keys, a.terms[i].Key); slices.Contains(near.Keys, t.key) {
			continue
		}
		var values []string
		for _, d := range t.counts.positive() {
			switch {
			case t.key != Hostname:
				values = append(values, st.Value(t.key, d))
			case d < len(st.own):
				near.Sites = append(near.Sites, d)
			}
		}
		near.Keys, near.Values = append(near.Keys, t.key), append(near.Values, values)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	r := Reason{Constraint: fmt.Sprintf("pod affinity on %s to pods with %s", strings.Join(keys, " and "), picks(a.terms)), Near: near}
	switch {
	case a.self && !slices.ContainsFunc(keys, func(key string) bool { return key != model.LabelHostname }):
		r.Hint = "no node has capacity for all of them"
	case a.self:
		r.Hint = "no node would have the label"
	default:
		r.Hint = "no such pod runs or is planned; start one, or correct the selector"
	}
	return r
}

func picks(terms []model.PodTerm) string {
	var out []string
	for i := range terms {
		out = append(out, describe(&terms[i].Select))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " and ")
}

func (st *State) whyApart(t *tally) Reason {
	var where []string
	for _, d := range t.counts.positive() {
		where = append(where, st.Value(t.key, d))
	}
	slices.Sort(where)
	if t.holders {
		return Reason{
			Constraint: fmt.Sprintf("the anti-affinity on %s of other pods to pods with %s", t.term.Key, describe(&t.term.Select)),
			Hint:       fmt.Sprintf("pods that keep away from it are in %s; have a NodePool allow another, or make theirs a preference", List(where)),
		}
	}
	return Reason{
		Constraint: fmt.Sprintf("anti-affinity on %s to pods with %s", t.term.Key, describe(&t.term.Select)),
		Hint:       fmt.Sprintf("such pods are in %s; have a NodePool allow another, or make it a preference", List(where)),
	}
}

// describe names the pods a selector picks.
func describe(s *model.PodSelector) string {
	switch {
	case s.Nothing:
		return "no labels at all"
	case len(s.Labels) == 0:
		return "any labels"
	}
	return s.Labels.String()
}

// shown is how many names a list gives before it counts the rest.
const shown = 5

// List joins a few names, and counts the rest.
func List(names []string) string {
	if len(names) > shown {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
