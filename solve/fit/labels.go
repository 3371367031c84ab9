// SPDX-License-Identifier: Apache-2.0

package fit

import "karpenter/model"

// Labels tells which nodes of a Snapshot satisfy demands. Thousands of nodes have few
// different values of most labels, so each value is asked about once.
type Labels struct {
	of     []model.Requirements  // by site
	values map[string][]valueRow // by key
	met    map[term]Bits
}

// term identifies a conjunction of requirements, which never changes.
type term struct {
	first *model.Requirement
	count int
}

// valueRow is the nodes that have equal requirements for a label.
type valueRow struct {
	has   model.Requirements // only for that label; empty = they don't have it
	sites Bits
}

// mostTerms is of how many terms it is kept which nodes meet them.
const mostTerms = 1 << 15

// newLabels returns what tells the nodes apart by their labels.
func newLabels(nodes []model.Node) *Labels {
	out := &Labels{values: map[string][]valueRow{}, met: map[term]Bits{}}
	for i := range nodes {
		out.of = append(out.of, nodes[i].Labels)
	}
	return out
}

// Meeting returns the sites of the nodes that satisfy the demands, and how many
// requirements were compared to find out. The demands must not change: the answer is kept.
func (l *Labels) Meeting(demands model.Requirements) (Bits, int) {
	if len(demands) == 0 {
		return l.all(), 0
	}
	id := term{&demands[0], len(demands)}
	if out, known := l.met[id]; known {
		return out, 0
	}
	out, compared := l.all(), 0
	for i := range demands {
		some := NewBits(len(l.of))
		for _, v := range l.valuesOf(demands[i].Key) {
			if _, ok := v.has.Satisfies(demands[i : i+1]); ok {
				some.Add(v.sites)
			}
			compared++
		}
		out = out.And(some)
	}
	if len(l.met) == mostTerms {
		clear(l.met)
	}
	l.met[id] = out
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
