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
			weigh(func(p Place) bool { return !s.allows(p) }, func() Reason { return st.whySpread(s, places) })
		}
	}
	if slices.Contains(blocked, false) && st.Joins(kind) {
		return st.whyAffinity(k.affinity[0]), true
	}
	return best, !slices.Contains(blocked, false)
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
		r.Hint = fmt.Sprintf("the fewest of the pods, %d, are in %s, which takes no more; free capacity there, raise maxSkew, or use ScheduleAnyway", least, list(low))
	}
	return r
}

func (st *State) whyAffinity(a *affinity) Reason {
	var keys, where []string
	for i, t := range a.tallies {
		keys = append(keys, a.terms[i].Key)
		for _, d := range t.counts.positive() {
			if t.key == Hostname {
				where = append(where, st.node(d).Name)
			} else {
				where = append(where, st.Value(t.key, d))
			}
		}
	}
	slices.Sort(keys)
	slices.Sort(where)
	keys, where = slices.Compact(keys), slices.DeleteFunc(slices.Compact(where), func(s string) bool { return s == "" })
	r := Reason{Constraint: fmt.Sprintf("pod affinity on %s to pods with %s", strings.Join(keys, " and "), picks(a.terms))}
	total := slices.ContainsFunc(a.tallies, func(t *tally) bool { return t.total > 0 })
	switch {
	case len(where) > 0:
		r.Hint = fmt.Sprintf("they run only in %s, which has no capacity for it; free capacity there, or run one of them elsewhere", list(where))
	case total:
		r.Hint = "the new node that they are planned on has no capacity for it"
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
			Hint:       fmt.Sprintf("pods that keep away from it are in %s; have a NodePool allow another, or make theirs a preference", list(where)),
		}
	}
	return Reason{
		Constraint: fmt.Sprintf("anti-affinity on %s to pods with %s", t.term.Key, describe(&t.term.Select)),
		Hint:       fmt.Sprintf("such pods are in %s; have a NodePool allow another, or make it a preference", list(where)),
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

func list(names []string) string {
	if len(names) > shown {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
