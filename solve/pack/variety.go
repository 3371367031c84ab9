// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"

	"karpenter/model"
)

// floor is the least number of values of a label that the types of one launch
// must span: the minValues of a pool.
type floor struct {
	key   string
	least int
}

// floorsOf returns the floors of a pool.
func floorsOf(p *model.Pool) []floor {
	var out []floor
	for _, r := range p.Requirements {
		if r.MinValues > 0 {
			out = append(out, floor{r.Key, r.MinValues})
		}
	}
	return out
}

// lower says what would do when only so many values are left.
func (f floor) lower(left int) string {
	if left == 0 {
		return "drop it, or let the NodePool use instance types that have the label"
	}
	return fmt.Sprintf("lower it to %d, or let the NodePool use more instance types", left)
}

// variety is what launches of one pool for pods with certain demands could
// list, and which values that spans.
type variety struct {
	*menu
	floors []floor
	values [][]value  // by choice: what it stands for
	names  [][]string // by floor: the values that occur
	most   int        // types a launch lists at most

	seen  []int // by value: the count it was last seen in
	first []int // by floor: where its values start in seen
	count int
	spans []int // by floor, of the last count
}

// value is one of the values of a floor's label.
type value struct{ floor, name int }

// reset starts a new count.
func (v *variety) reset() {
	v.count++
	clear(v.spans)
}

// gain returns how many values the choice adds to floors that lack some.
func (v *variety) gain(choice int) int {
	n := 0
	for _, x := range v.values[choice] {
		if v.seen[v.first[x.floor]+x.name] != v.count && v.spans[x.floor] < v.floors[x.floor].least {
			n++
		}
	}
	return n
}

// add counts the values of the choice.
func (v *variety) add(choice int) {
	for _, x := range v.values[choice] {
		if seen := &v.seen[v.first[x.floor]+x.name]; *seen != v.count {
			*seen = v.count
			v.spans[x.floor]++
		}
	}
}

// met reports whether what was counted is enough.
func (v *variety) met() bool {
	for i, f := range v.floors {
		if v.spans[i] < f.least {
			return false
		}
	}
	return true
}

// enough reports whether a launch that may list these choices, cheapest first,
// can span what it must.
func (v *variety) enough(among []int) bool {
	need := 0
	for _, f := range v.floors {
		need += f.least
	}
	if need > v.most {
		v.pick(among)
		return v.met()
	}
	v.reset()
	for _, c := range among {
		v.add(c)
		if v.met() {
			return true
		}
	}
	return false
}

// pick returns as few of the choices as it can so that a launch which lists
// them spans what it must, or as much of it as possible: the first of them,
// then whatever adds most, as many as a launch may list.
func (v *variety) pick(among []int) []int {
	v.reset()
	var out []int
	for len(among) > 0 && len(out) < v.most && !v.met() {
		best, most := among[0], 0
		if len(out) > 0 {
			for _, c := range among {
				if n := v.gain(c); n > most {
					best, most = c, n
				}
			}
			if most == 0 {
				break
			}
		}
		v.add(best)
		out = append(out, best)
	}
	return out
}

// short returns a floor that the choices do not reach, and what they span of it.
func (v *variety) short(among []int) (floor, int) {
	v.pick(among)
	for i, f := range v.floors {
		if v.spans[i] < f.least {
			return f, v.spans[i]
		}
	}
	return floor{}, 0
}

// menu is what can be launched in a pool as one of some offers.
type menu struct {
	choices []choice // cheapest first
	types   []string // capacity types that occur, sorted; positions are the bits of choice.types
}

// choice is a type row a launch may end up with, and its cheapest offer.
type choice struct {
	row   int
	offer int
	price model.Price
	types uint64 // capacity types it can be launched as
}
