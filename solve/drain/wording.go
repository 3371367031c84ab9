// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// wording is the values that types list for labels, by number, as far as it was asked
// about the types.
type wording struct {
	index  map[string]int // by key: position in labels
	labels []spelled
	of     map[*model.InstanceType][]listed
}

// spelled is a label with its values.
type spelled struct {
	key    string
	index  map[string]int // by value: position in values
	values []string
}

// listed is the values that a type lists for a label, by number.
type listed struct {
	label  int
	values []int
}

func newWording() *wording {
	return &wording{index: map[string]int{}, of: map[*model.InstanceType][]listed{}}
}

// list returns what the type lists.
func (w *wording) list(t *model.InstanceType) []listed {
	out, known := w.of[t]
	if known {
		return out
	}
	out = make([]listed, 0, len(t.Requirements))
	numbers := make([]int, 0, len(t.Requirements))
	for i := range t.Requirements {
		q := &t.Requirements[i]
		if q.Complement || q.Gte.Set || q.Lte.Set {
			continue
		}
		at, known := w.index[q.Key]
		if !known {
			at = len(w.labels)
			w.index[q.Key], w.labels = at, append(w.labels, spelled{key: q.Key, index: map[string]int{}})
		}
		from := len(numbers)
		for _, v := range q.Values {
			numbers = append(numbers, w.labels[at].number(v))
		}
		out = append(out, listed{at, numbers[from:len(numbers):len(numbers)]})
	}
	w.of[t] = out
	return out
}

// number returns the number of a value, which it may add.
func (s *spelled) number(value string) int {
	n, known := s.index[value]
	if !known {
		n = len(s.values)
		s.index[value], s.values = n, append(s.values, value)
	}
	return n
}

// inCommon returns which labels all of the types list values for, with those that any of
// them lists.
func (w *wording) inCommon(types []*model.InstanceType) model.Requirements {
	for _, t := range types {
		w.list(t)
	}
	having, said := make([]int, len(w.labels)), make([]fit.Bits, len(w.labels))
	for i := range said {
		said[i] = fit.NewBits(len(w.labels[i].values))
	}
	for _, t := range types {
		for _, l := range w.list(t) {
			having[l.label]++
			for _, v := range l.values {
				said[l.label].Set(v)
			}
		}
	}
	var out []model.Requirement
	for i, n := range having {
		if n == 0 || n < len(types) {
			continue
		}
		q := model.Requirement{Key: w.labels[i].key, Values: make([]string, 0, said[i].Count())}
		for v := range said[i].All() {
			q.Values = append(q.Values, w.labels[i].values[v])
		}
		slices.Sort(q.Values)
		out = append(out, q)
	}
	return model.NewRequirements(out...)
}
