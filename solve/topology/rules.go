// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"math"
	"slices"

	"karpenter/model"
)

// rules is the rules for the pods of one kind.
type rules struct {
	spreads  []spread
	affinity []*affinity
	empties  []*tally // a domain that any counts pods in is closed
	adds     []*tally // those a pod of the kind counts in
	keys     []int    // by which a node for it must be settled, ascending
}

// spread is one topology spread constraint.
type spread struct {
	*model.Spread
	tally *tally
	self  int // 1 when the pods themselves are selected
}

// affinity is all required pod affinity of a kind, or one wish for some: as the
// scheduler has it, it is to pods that meet every term.
type affinity struct {
	terms   []model.PodTerm
	tallies []*tally // by term
	self    bool     // the pods meet every term themselves
	before  []int    // other kinds of such pods that wait for no one, and so are likely bound first
	waits   bool     // there are some, also when they are not counted on any more
}

// Unbounded is how many pods a site takes that no rule bounds.
const Unbounded = math.MaxInt32

func (k *rules) allows(p Place) bool {
	for i := range k.spreads {
		if s := &k.spreads[i]; s.tally.key != Hostname && !s.allows(p) {
			return false
		}
	}
	for _, t := range k.empties {
		if t.key != Hostname && slices.ContainsFunc(p[t.key], func(d int) bool { return t.at(d) > 0 }) {
			return false
		}
	}
	return !slices.ContainsFunc(k.affinity, func(a *affinity) bool { return !a.allows(p) })
}

func (s *spread) allows(p Place) bool {
	return s.tally.filter.settled(p) && !s.exceeds(p[s.tally.key][0])
}

// exceeds reports whether one more pod in the domain would be one too many.
func (s *spread) exceeds(domain int) bool {
	return s.tally.at(domain)+s.self-s.tally.fewest(s.MinDomains) > s.MaxSkew
}

// over reports whether the domain has too many pods for a spread constraint of the kind, the pod of the
// kind that came last among them.
func (k *rules) over(s *spread, domain int) bool {
	return s.tally.at(domain)-k.addsTo(s.tally)+s.self-s.tally.fewest(s.MinDomains) > s.MaxSkew
}

// addsTo returns how often a pod of the kind counts in the tally: twice if it says the same twice.
func (k *rules) addsTo(t *tally) int {
	n := 0
	for _, a := range k.adds {
		if a == t {
			n++
		}
	}
	return n
}

func (a *affinity) allows(p Place) bool {
	first := a.first()
	for _, t := range a.tallies {
		if t.key != Hostname && (len(p[t.key]) != 1 || !first && t.at(p[t.key][0]) == 0) {
			return false
		}
	}
	return true
}

// first reports whether a pod may be the first of those it has affinity to: it
// is one of them, there is none yet, and none is likely to be bound before.
func (a *affinity) first() bool {
	return a.self && len(a.before) == 0 && !slices.ContainsFunc(a.tallies, func(t *tally) bool { return t.total > 0 })
}

func (a *affinity) joins() bool {
	return slices.ContainsFunc(a.tallies, func(t *tally) bool { return t.key == Hostname })
}

// capUnnamed is Cap on a site without a hostname: rules that ask for one let
// no one in, and anti-affinity holds everywhere.
func (k *rules) capUnnamed() int {
	if slices.ContainsFunc(k.spreads, func(s spread) bool { return s.tally.key == Hostname }) ||
		slices.ContainsFunc(k.affinity, func(a *affinity) bool { return a.joins() }) {
		return 0
	}
	return Unbounded
}

// pin adds a key by which nodes for the kind must be settled.
func (k *rules) pin(key int) {
	if i, ok := slices.BinarySearch(k.keys, key); !ok && key != Hostname {
		k.keys = slices.Insert(k.keys, i, key)
	}
}
