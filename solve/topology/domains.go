// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/binary"
	"slices"
	"strconv"

	"karpenter/model"
)

// What it takes to find the domains of a spread constraint, in steps.
const (
	stepsPerSite  = 2  // of each
	stepsPerSight = 64 // of one that may be in several
)

// findDomains notes the domains that have a node which counts for the tally, or may
// have one. Domains that have one are not looked for any more.
func (st *State) findDomains(t *tally) {
	open, text := st.findHere(t)
	at := lookout{key: t.key, sites: text}
	if t.filter.chosen != nil {
		at.chosen = &t.filter.chosen[0]
	}
	if same, ok := st.lookouts[at]; ok {
		t.here, t.maybe = same.here, same.maybe
		return
	}
	st.lookouts[at] = t
	st.Steps += stepsPerSight * len(open)
	for _, site := range open {
		for _, d := range st.domainsAt(t, site) {
			if !value(t.here, d) {
				t.maybe = put(t.maybe, d, append(value(t.maybe, d), site))
			}
		}
	}
}

// findHere notes the domains that have a node which counts for the tally, and returns the
// sites that may be in others, which are good until the next call, and a text that is equal
// where the same is found.
func (st *State) findHere(t *tally) (open []int, text string) {
	f := t.filter
	open = st.scratch[:0]
	for site, p := range st.sites {
		switch in := p[t.key]; {
		case len(in) == 0 || len(in) == 1 && value(t.here, in[0]) || goes(st.node(site)) || !f.labelled(p):
		case len(in) > 1 || st.counts(f, site) == perhaps:
			open = append(open, site)
		case st.counts(f, site) == surely:
			t.here = put(t.here, in[0], true)
		}
	}
	st.scratch, st.Steps = open, st.Steps+stepsPerSite*len(st.sites)
	found := binary.AppendUvarint(nil, uint64(len(t.here)))
	for _, here := range t.here {
		found = strconv.AppendBool(found, here)
	}
	last := 0
	open = slices.DeleteFunc(open, func(site int) bool {
		more := slices.ContainsFunc(st.sites[site][t.key], func(d int) bool { return !value(t.here, d) })
		if !more || st.counts(f, site) == never {
			return true
		}
		found, last = binary.AppendUvarint(found, uint64(site-last)), site
		return false
	})
	return open, string(found)
}

// domainsAt returns the domains that an open site may be in while it counts for the tally.
func (st *State) domainsAt(t *tally, site int) []int {
	var out []int
	if site >= len(st.own) {
		for _, v := range st.outlook.Values(site, t.filter.chosen, st.Keys[t.key]) {
			out = append(out, st.Domain(t.key, v))
		}
		return out
	}
	labels := st.settled(st.node(site))
	for _, d := range st.sites[site][t.key] {
		if t.filter.mayAllow(labels.And(model.NewRequirement(st.Keys[t.key], model.In, st.Value(t.key, d)))) {
			out = append(out, d)
		}
	}
	return out
}
