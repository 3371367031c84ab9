// SPDX-License-Identifier: Apache-2.0

package pack

import "slices"

// ledger tells where a finished plan has the pods of each kind.
type ledger struct {
	*draft
	onNodes map[int]map[int]int // by kind and site: what the plan puts there, without what was planned before and stays
	inBins  map[int]map[int]int // by kind and bin: on all its nodes
	domains map[string][]string // by label and bin: its value; "" = none or several
}

func newLedger(x *draft) *ledger {
	l := &ledger{x, map[int]map[int]int{}, map[int]map[int]int{}, map[string][]string{}}
	add := func(to map[int]map[int]int, kind, at, pods int) {
		if to[kind] == nil {
			to[kind] = map[int]int{}
		}
		to[kind][at] += pods
	}
	for _, p := range x.placed {
		add(l.onNodes, p.kind, p.site, 1)
	}
	for _, p := range x.keptStill() {
		add(l.onNodes, p.kind, p.site, -1)
	}
	for i, b := range x.bins {
		for _, t := range b.take {
			for _, m := range x.demands[t.demand].parts() {
				add(l.inBins, m.of.kind, i, m.pods*t.pods*b.count)
			}
		}
	}
	return l
}

// span is how many pods of a demand plans have in a topology domain.
type span struct {
	domain    string // the value of the key of the division
	low, high int    // that every plan has there at least, and at most
}

// keeps reports whether the plan has so many pods of d, and as many in each domain as the
// spans say: pods that were put wherever there is room may be elsewhere.
func (l *ledger) keeps(d *demand, key, pods int, spans []span) bool {
	in, label := map[string]int{}, l.topology.Keys[key]
	for site, n := range l.onNodes[d.kind] {
		v, _ := l.snapshot.Nodes[site].Labels.Value(label)
		in[v] += n
		pods -= n
	}
	domains := l.domainsBy(label)
	for bin, n := range l.inBins[d.kind] {
		if domains[bin] == "" {
			return false
		}
		in[domains[bin]] += n
		pods -= n
	}
	return pods == 0 && !slices.ContainsFunc(spans, func(s span) bool {
		n := in[s.domain]
		return n < s.low || n > s.high
	})
}

// domainsBy returns the values of a label that the bins have.
func (l *ledger) domainsBy(label string) []string {
	out, known := l.domains[label]
	if !known {
		for _, b := range l.bins {
			v, _ := l.demandsOn(b, label).Value(label)
			out = append(out, v)
		}
		l.domains[label] = out
	}
	return out
}
