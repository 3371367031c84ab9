// SPDX-License-Identifier: Apache-2.0

package fit

import "karpenter/model"

// Labels tells which of some nodes satisfy demands. Thousands of nodes have few
// different values of most labels, so each value is asked about once.
type Labels struct {
	nodes  []NodeRow
	values map[string][]valueRow       // by key
	met    map[*model.Requirement]Bits // by first requirement of a term
}

// valueRow is the nodes that have equal requirements for a label.
type valueRow struct {
	has   model.Requirements // only for that label; empty = they don't have it
	nodes Bits
}

// NewLabels returns what tells the nodes apart by their labels.
func NewLabels(nodes []NodeRow) *Labels {
	return &Labels{nodes, map[string][]valueRow{}, map[*model.Requirement]Bits{}}
}

// Meeting returns the positions of the nodes that satisfy the term, and how many
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
		some := NewBits(len(l.nodes))
		for _, v := range l.valuesOf(term[i].Key) {
			if _, ok := v.has.Satisfies(term[i : i+1]); ok {
				some.Add(v.nodes)
			}
			compared++
		}
		out = out.And(some)
	}
	l.met[&term[0]] = out
	return out, compared
}

func (l *Labels) all() Bits {
	out := NewBits(len(l.nodes))
	for i := range l.nodes {
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
	for i := range l.nodes {
		r, has := l.nodes[i].Labels.Get(key)
		id := ""
		if has {
			id = matchKey(r)
		}
		j, seen := at[id]
		if !seen {
			j = len(out)
			at[id] = j
			out = append(out, valueRow{nodes: NewBits(len(l.nodes))})
			if has {
				out[j].has = model.Requirements{r}
			}
		}
		out[j].nodes.Set(i)
	}
	l.values[key] = out
	return out
}
