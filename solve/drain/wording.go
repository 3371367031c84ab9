// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// wording is the values that the types of a pool list for labels, numbered.
type wording struct {
	keys   []string              // sorted
	values [][]string            // by key, sorted
	of     map[string][][]listed // by name of the type: of each of that name
}

// listed is the values that a type lists for a label, by number.
type listed struct {
	key    int
	values []int
}

func newWording(types []*model.InstanceType) *wording {
	known := map[string]map[string]int{}
	for _, t := range types {
		for i := range t.Requirements {
			if q := &t.Requirements[i]; lists(q) {
				if known[q.Key] == nil {
					known[q.Key] = map[string]int{}
				}
				for _, v := range q.Values {
					known[q.Key][v] = 0
				}
			}
		}
	}
	w := &wording{keys: slices.Sorted(maps.Keys(known)), of: map[string][][]listed{}}
	for _, key := range w.keys {
		values := slices.Sorted(maps.Keys(known[key]))
		for i, v := range values {
			known[key][v] = i
		}
		w.values = append(w.values, values)
	}
	var all []listed  // of all types, in one array
	var numbers []int // likewise
	for _, t := range types {
		first := len(all)
		for i := range t.Requirements {
			q := &t.Requirements[i]
			if !lists(q) {
				continue
			}
			from := len(numbers)
			for _, v := range q.Values {
				numbers = append(numbers, known[q.Key][v])
			}
			key, _ := slices.BinarySearch(w.keys, q.Key)
			all = append(all, listed{key: key, values: numbers[from:len(numbers):len(numbers)]})
		}
		w.of[t.Name] = append(w.of[t.Name], all[first:len(all):len(all)])
	}
	return w
}

// lists reports whether the requirement is a list of values.
func lists(q *model.Requirement) bool { return !q.Complement && !q.Gte.Set && !q.Lte.Set }

// inCommon returns which labels all types of these names list values for, with those
// that any of them lists.
func (w *wording) inCommon(names []string) model.Requirements {
	types, having, values := 0, make([]int, len(w.keys)), make([]fit.Bits, len(w.keys))
	for key := range values {
		values[key] = fit.NewBits(len(w.values[key]))
	}
	for _, name := range names {
		for _, t := range w.of[name] {
			types++
			for _, l := range t {
				having[l.key]++
				for _, v := range l.values {
					values[l.key].Set(v)
				}
			}
		}
	}
	var out model.Requirements
	for key, n := range having {
		if n == 0 || n < types {
			continue
		}
		q := model.Requirement{Key: w.keys[key], Values: make([]string, 0, values[key].Count())}
		for v := range values[key].All() {
			q.Values = append(q.Values, w.values[key][v])
		}
		out = append(out, q)
	}
	return out
}
