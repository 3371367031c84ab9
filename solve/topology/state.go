// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// stepsPerCount is what it takes to count the pods of a peer on a node, for a rule.
const stepsPerCount = 8

// State is where pods are, as far as rules between pods ask.
type State struct {
	Keys  []string // topology keys some rule is about, but the hostname
	Looks int      // how often the rules were asked in search of an order

	Steps int // that compiling the rules took

	Patience int // how much longer Admit looks ahead for an order, in times

	numbers map[string]int // of the keys
	domains []domains
	own     []model.Node // the Snapshot's
	expected
	sights
	memory    *Memory
	wellKnown model.LabelSet
	final     bool
	sites     []Place
	kinds     []rules
	links
}

// links is what kinds have to do with each other, as far as it was asked for.
type links struct {
	apart     [][]int          // what Apart returned
	following map[*tally][]int // kinds that have affinity to what it counts
	adders    map[*tally][]int // kinds that count in it, ascending
}

// addersOf returns the kinds that count in the tally, ascending.
func (st *State) addersOf(t *tally) []int {
	if st.adders == nil {
		st.adders = map[*tally][]int{}
		for k := range st.kinds {
			for _, t := range st.kinds[k].adds {
				if some := st.adders[t]; len(some) == 0 || some[len(some)-1] != k {
					st.adders[t] = append(some, k)
				}
			}
		}
	}
	return st.adders[t]
}

// expected is the nodes that a plan adds, the sites after those of the Snapshot.
type expected struct {
	more    []model.Node
	outlook Outlook
}

// Domain returns the number of a value of a key.
func (st *State) Domain(key int, value string) int { return st.domains[key].number(value) }

// Value returns the value a domain of a key stands for.
func (st *State) Value(key, domain int) string { return st.domains[key].names[domain] }

// At returns the place of a site.
func (st *State) At(site int) Place { return st.sites[site] }

// locate finds the places of all sites.
func (st *State) locate() {
	known := st.memory.setting(st.Keys)
	st.sites = known.sites[:len(st.own):len(st.own)]
	for k := range known.domains {
		d := &known.domains[k]
		st.domains[k] = domains{names: d.names[:len(d.names):len(d.names)], index: d.index, shared: true}
	}
	st.Steps += len(st.more) * len(st.Keys)
	values, last := make([][]string, len(st.Keys)), make([][]string, len(st.Keys)) // by key
	var p Place
	for i := range st.more {
		alike := i > 0
		for k, key := range st.Keys {
			values[k] = st.outlook.Values(len(st.own)+i, nil, key)
			alike = alike && fit.Same(values[k], last[k])
		}
		if !alike { // many new nodes are
			p = make(Place, len(st.Keys))
			for k := range values {
				for _, v := range values[k] {
					p[k] = append(p[k], st.Domain(k, v))
				}
			}
			values, last = last, values
		}
		st.sites = append(st.sites, p)
	}
}

// node returns the node of a site.
func (st *State) node(site int) *model.Node {
	if site < len(st.own) {
		return &st.own[site]
	}
	return &st.more[site-len(st.own)]
}

// key returns the number of a topology key, which it may add.
func (st *State) key(name string) int {
	if name == model.LabelHostname {
		return Hostname
	}
	if i, ok := st.numbers[name]; ok {
		return i
	}
	i := len(st.Keys)
	st.numbers[name] = i
	st.Keys = append(st.Keys, name)
	st.domains = append(st.domains, domains{})
	return i
}

// named reports whether the site has a hostname: the scheduler goes by the
// label, and a node that starts will have it.
func (st *State) named(site int) bool {
	return site >= len(st.own) || !st.own[site].Registered || st.memory.sites[site].named
}

// counts tells whether a site counts for the filter.
func (st *State) counts(f *filter, site int) int8 {
	memo, i := f.own, site
	if site >= len(st.own) {
		if f.more == nil {
			f.more = make([]int8, len(st.more))
		}
		memo, i = f.more, site-len(st.own)
	}
	if memo[i] == unknown {
		memo[i] = st.look(f, site)
	}
	return memo[i]
}

func (st *State) look(f *filter, site int) int8 {
	n := st.node(site)
	labels := st.settled(n)
	some, all := f.mayAllow(labels), f.allows(labels)
	if site >= len(st.own) && f.chosen != nil {
		some, all = st.outlook.Meets(site, f.chosen)
	}
	switch {
	case !f.tolerates(n) || !some || f.named && !st.named(site):
		return never
	case all:
		return surely
	}
	return perhaps
}

// settled returns the labels of a node without those of the user's own that are only
// not to have some value: the node does not get these.
func (st *State) settled(n *model.Node) model.Requirements {
	absent := func(r model.Requirement) bool { return r.AllowsAbsence() && !st.wellKnown.Has(r.Key) }
	if !slices.ContainsFunc(n.Labels, absent) {
		return n.Labels
	}
	return slices.DeleteFunc(slices.Clone(n.Labels), absent)
}

// goes reports whether the node is gone soon, so that no pod has to spread over it.
func goes(n *model.Node) bool { return n.Deleting && !n.Stuck }

// count counts n pods at a place in the tally; site is -1 on a new node.
func (st *State) count(t *tally, p Place, site, n int) {
	sure := true
	if t.filter != nil {
		if !t.filter.labelled(p) || site >= 0 && st.counts(t.filter, site) == never {
			return
		}
		sure = site < 0 || st.counts(t.filter, site) == surely
	}
	if t.key == Hostname {
		switch {
		case site < 0:
			t.total += n
		case st.named(site):
			t.bump(site, n)
		}
		return
	}
	if t.settled && len(p[t.key]) > 1 {
		t.total += n
		return
	}
	for _, d := range p[t.key] {
		t.bump(d, n)
		if !sure || len(p[t.key]) > 1 {
			t.doubt.add(d, n)
		}
	}
	if site >= 0 && (!sure || len(p[t.key]) > 1) {
		t.unsure.add(site, n)
		t.leastValid = false
	}
}

// Free reports whether no rule between pods is about the kind.
func (st *State) Free(kind int) bool {
	k := &st.kinds[kind]
	return len(k.spreads) == 0 && len(k.affinity) == 0 && len(k.empties) == 0 && len(k.adds) == 0
}

// Pinned returns the numbers of the keys by which a node for the kind must be
// settled, ascending.
func (st *State) Pinned(kind int) []int { return st.kinds[kind].keys }

// Buyable tells for which places nodes for the kind could be launched: their
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
		st.count(t, p, site, n)
	}
}

// Allows reports whether the rules on keys other than the hostname let one
// more pod of the kind run at the place.
func (st *State) Allows(kind int, p Place) bool { return st.kinds[kind].allows(p) }

// Starts reports whether the next pod of the kind chooses the domain that all
// others of it must follow to.
func (st *State) Starts(kind int) bool {
	return slices.ContainsFunc(st.kinds[kind].affinity, func(a *affinity) bool { return a.first() })
}

// Waits reports whether pods of the kind could be the first of those they have affinity
// to, if others were not likely bound before.
func (st *State) Waits(kind int) bool {
	return slices.ContainsFunc(st.kinds[kind].affinity, func(a *affinity) bool { return a.waits })
}

// Cap returns how many more pods of the kind the rules on the hostname let run
// on a site, at most Unbounded.
func (st *State) Cap(kind, site int) int {
	k := &st.kinds[kind]
	if !st.named(site) {
		return k.capUnnamed()
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
	return st.Holds(kind, site)
}

// Holds is Cap on a site where the pods of others are that they have affinity to.
func (st *State) Holds(kind, site int) int {
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
	return most
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
	t := s.tally
	if !t.emptiest.valid {
		t.emptiest = st.findEmptiest(t)
	}
	if t.emptiest.known < max(s.MinDomains, 1) {
		return 0
	}
	return t.emptiest.least
}

// findEmptiest looks for a node that counts for the tally and has fewest pods. The search begins
// where the last one ended, and ends with a node that has none.
func (st *State) findEmptiest(t *tally) emptiest {
	out := emptiest{valid: true, least: Unbounded}
	for i := range st.sites {
		site := (t.emptiest.site + i) % len(st.sites)
		if goes(st.node(site)) || !t.filter.labelled(st.sites[site]) || st.counts(t.filter, site) == never {
			continue
		}
		if t.at(site) < out.least {
			out.site, out.least = site, t.at(site)
		}
		if st.counts(t.filter, site) == surely {
			out.known++
		}
		if out.least == 0 {
			break
		}
	}
	return out
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
