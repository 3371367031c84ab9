// SPDX-License-Identifier: Apache-2.0

package pack

import "slices"

// wish is one preference of the pods of a kind.
type wish struct {
	kind int
	list int // which of the lists of the Shape it is in
	at   int // its position there
	cost float64

	// Of a preference to share no node with others alike; 0 = it is no such.
	strict int // how many may share one
	most   int // how many do where that costs next to nothing: on the nodes that are needed anyway, or on small ones
}

// The lists of a Shape that hold preferences.
const (
	inPreferences = iota
	inSpread
	inPodTerms
)

// without drops the wishes of the kinds; where they have none, what others wish
// of other pods.
func without(wishes []wish, kinds []int) []wish {
	out := slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool { return slices.Contains(kinds, w.kind) })
	if len(out) == len(wishes) {
		out = slices.DeleteFunc(out, func(w wish) bool { return w.list != inPreferences })
	}
	if len(out) == len(wishes) {
		return nil
	}
	return out
}

// cheapHalf drops the wishes that cost most until at most half the cost, and
// not all of them, are left.
func cheapHalf(wishes []wish) []wish {
	total, left := 0.0, 0.0
	for _, w := range wishes {
		total += w.cost
	}
	if total == 0 {
		return wishes[(len(wishes)+1)/2:]
	}
	for i := len(wishes) - 1; i > 0; i-- {
		if left += wishes[i].cost; left > total/2 {
			return wishes[i+1:]
		}
	}
	return wishes[1:]
}
