// SPDX-License-Identifier: Apache-2.0

package fit

import "karpenter/model"

// Labels tells which nodes of a Snapshot satisfy demands. Thousands of nodes have few
// different values of most labels, so each value is asked about once.
type Labels struct {
	of     []model.Requirements        // by site
	values map[string][]valueRow       // by key
	met    map[*model.Requirement]Bits // by first requirement of a term
}

// valueRow is the nodes that have equal requirements for a label.
type valueRow struct {
	has   model.Requirements // only for that label; empty = they don't have it
	sites Bits
}

// mostTerms is of how many terms it is kept which nodes meet them.
const mostTerms = 1 << 15

// Labels returns what tells the nodes of s apart by their labels. It is kept as long
// as the labels stay the same.
func (m *Memory) Labels(s *model.Snapshot) *Labels {
	if m.labels == nil || !m.labels.are(s.Nodes) {
		m.labels = &Labels{values: map[string][]valueRow{}, met: map[*model.Requirement]Bits{}}
		for i := range s.Nodes {
			m.labels.of = append(m.labels.of, s.Nodes[i].Labels)
		}
	}
	return m.labels
}

// are reports whether these are the labels of the nodes.
func (l *Labels) are(nodes []model.Node) bool {
	for i := range l.of {
		if i == len(nodes) || !Same(l.of[i], nodes[i].Labels) {
			return false
		}
	}
	return len(l.of) == len(nodes)
}

// Meeting returns the sites of the nodes that satisfy the term, and how many
// requirements were compared to find out. The term must not change; the answer is kept.
func (l *Labels) Meeting(term model.Requirements) (Bits, int) {
	if len(term) == 0 {
		return l.all(), 0
	}
	if out, known := l.met[&term[0]]; known {
		return out, 0
	}
	out, compared := l.all(), 0
	for i := range term {
		some := NewBits(len(l.of))
		for _, v := range l.valuesOf(term[i].Key) {
			if _, ok := v.has.Satisfies(term[i : i+1]); ok {
				some.Add(v.sites)
			}
			compared++
		}
		out = out.And(some)
	}
	if len(l.met) == mostTerms {
		clear(l.met)
	}
	l.met[&term[0]] = out
	return out, compared
}

func (l *Labels) all() Bits {
	out := NewBits(len(l.of))
	for i := range l.of {
		out.Set(i)
	}
	return out
}

// valuesOf returns the nodes by what they have for the label.
func (l *Labels) valuesOf(key string) []valueRow {
	out, known := l.values[key]
	if known {
		return out
	}
	at := map[string]int{} // by what a node has, spelled out
	for i := range l.of {
		r, has := l.of[i].Get(key)
		id := "\x00" // no value
		if has {
			id = valueKey(&r)
		}
		j, seen := at[id]
		if !seen {
			j = len(out)
			at[id] = j
			out = append(out, valueRow{sites: NewBits(len(l.of))})
			if has {
				out[j].has = model.Requirements{r}
			}
		}
		out[j].sites.Set(i)
	}
	l.values[key] = out
	return out
}
