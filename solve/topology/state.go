package topology

import (
	"math"
	"slices"

	"karpenter/model"
)

// State is where pods are, as far as rules between pods ask.
type State struct {
	Keys  []string // topology keys some rule is about, but the hostname
	Looks int      // how often the rules were asked in search of an order

	domains   []domains
	nodes     []model.Node
	own       int // how many of nodes are the Snapshot's
	final     bool
	outlook   Outlook
	sites     []Place
	kinds     []rules
	keptApart [][]int // what Apart returned
}

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
}

// Unbounded is how many pods a site takes that no rule bounds.
const Unbounded = math.MaxInt32

// Free reports whether no rule between pods is about the kind.
func (st *State) Free(kind int) bool {
	k := &st.kinds[kind]
	return len(k.spreads) == 0 && len(k.affinity) == 0 && len(k.empties) == 0 && len(k.adds) == 0
}

// Pinned returns the numbers of the keys by which a node for the kind must be
// settled, ascending.
func (st *State) Pinned(kind int) []int { return st.kinds[kind].keys }

// Buyable tells for which places nodes for the kind could be bought: their
// domains are known to its spread constraints besides those of the nodes there
// are.
func (st *State) Buyable(kind int, places []Place) {
	for _, s := range st.kinds[kind].spreads {
		if s.tally.key == Hostname {
			continue
		}
		s.tally.there, s.tally.leastValid = nil, false
		for _, p := range places {
			if s.tally.filter.settled(p) {
				s.tally.there = put(s.tally.there, p[s.tally.key][0], true)
			}
		}
	}
}

// Add counts n more pods of the kind at a place, fewer when n is negative;
// site is -1 on a new node.
func (st *State) Add(kind int, p Place, site, n int) {
	for _, t := range st.kinds[kind].adds {
		t.add(st, p, site, n)
	}
}

// Allows reports whether the rules on keys other than the hostname let one
// more pod of the kind run at the place.
func (st *State) Allows(kind int, p Place) bool { return st.kinds[kind].allows(p) }

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
	return s.tally.filter.settled(p) &&
		s.tally.at(p[s.tally.key][0])+s.self-s.tally.fewest(s.MinDomains) <= s.MaxSkew
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
// is one of them, and there is none yet.
func (a *affinity) first() bool {
	return a.self && !slices.ContainsFunc(a.tallies, func(t *tally) bool { return t.total > 0 })
}

// Starts reports whether the next pod of the kind chooses the domain that all
// others of it must follow to.
func (st *State) Starts(kind int) bool {
	return slices.ContainsFunc(st.kinds[kind].affinity, func(a *affinity) bool { return a.first() })
}

// Cap returns how many more pods of the kind the rules on the hostname let run
// on a site, at most Unbounded.
func (st *State) Cap(kind, site int) int {
	k := &st.kinds[kind]
	if !st.named(site) {
		return k.capUnnamed()
	}
	most := Unbounded
	for i := range k.spreads {
		s := &k.spreads[i]
		if s.tally.key != Hostname {
			continue
		}
		switch left := s.MaxSkew + st.fewestOnNodes(s) - s.tally.at(site); {
		case left < s.self:
			return 0
		case s.self > 0:
			most = min(most, left)
		}
	}
	for _, t := range k.empties {
		if t.key == Hostname {
			if t.at(site) > 0 {
				return 0
			}
			if slices.Contains(k.adds, t) {
				most = 1
			}
		}
	}
	for _, a := range k.affinity {
		if a.first() {
			continue
		}
		for _, t := range a.tallies {
			if t.key == Hostname && t.at(site) == 0 {
				return 0
			}
		}
	}
	return most
}

// capUnnamed is Cap on a site without a hostname: rules that ask for one let
// nobody in, and anti-affinity holds everywhere.
func (k *rules) capUnnamed() int {
	if slices.ContainsFunc(k.spreads, func(s spread) bool { return s.tally.key == Hostname }) ||
		slices.ContainsFunc(k.affinity, func(a *affinity) bool { return a.joins() }) {
		return 0
	}
	return Unbounded
}

// Final says whether there will be no more nodes. The scheduler knows only those
// there are.
func (st *State) Final(yes bool) { st.final = yes }

// fewestOnNodes returns how many pods the node has that has fewest of those a
// constraint on the hostname is about: none as long as there may be more nodes.
func (st *State) fewestOnNodes(s *spread) int {
	if !st.final {
		return 0
	}
	least, known := Unbounded, 0
	for site := range st.nodes {
		f := s.tally.filter
		if st.nodes[site].Deleting || !f.labelled(st.sites[site]) || st.counts(f, site) == never {
			continue
		}
		if least = min(least, s.tally.at(site)); least == 0 {
			return 0
		}
		if st.counts(f, site) == surely {
			known++
		}
	}
	if known < max(s.MinDomains, 1) {
		return 0
	}
	return least
}

// Count returns how many pods that the kind's own rules are about are in the
// domains of the place, to break ties towards the emptiest.
func (st *State) Count(kind int, p Place) int {
	k := &st.kinds[kind]
	n := 0
	for _, s := range k.spreads {
		if s.tally.key != Hostname && len(p[s.tally.key]) == 1 {
			n += s.tally.at(p[s.tally.key][0])
		}
	}
	return n
}
