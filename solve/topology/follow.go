// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"iter"
	"slices"
)

// Follows reports whether the kind has pod affinity.
func (st *State) Follows(kind int) bool { return len(st.kinds[kind].affinity) > 0 }

// Wants reports whether the kind has affinity to pods of the other kind.
func (st *State) Wants(kind, other int) bool {
	for _, a := range st.kinds[kind].affinity {
		if slices.Contains(st.kinds[other].adds, a.tallies[0]) {
			return true
		}
	}
	return false
}

// followers returns the kinds with affinity to pods that are counted in a tally.
func (st *State) followers() map[*tally][]int {
	if st.following == nil {
		st.following = map[*tally][]int{}
		for k := range st.kinds {
			for _, a := range st.kinds[k].affinity {
				st.following[a.tallies[0]] = append(st.following[a.tallies[0]], k)
			}
		}
	}
	return st.following
}

// followersOf returns the kinds that have affinity to this one, which may be the kind itself.
func (st *State) followersOf(kind int) iter.Seq[int] {
	followers := st.followers()
	return func(yield func(int) bool) {
		for _, t := range st.kinds[kind].adds {
			for _, k := range followers[t] {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// FollowedBy reports whether some accepts a kind that has affinity to this one, which may be
// the kind itself.
func (st *State) FollowedBy(kind int, some func(kind int) bool) bool {
	for k := range st.followersOf(kind) {
		if some(k) {
			return true
		}
	}
	return false
}

// Any accepts every kind.
func Any(int) bool { return true }

// Awaited reports whether others do not count on being the first because of the kind.
func (st *State) Awaited(kind int) bool {
	return st.FollowedBy(kind, func(k int) bool {
		return slices.ContainsFunc(st.kinds[k].affinity, func(a *affinity) bool { return slices.Contains(a.before, kind) })
	})
}

// GiveUp says that no pod of the kind will be bound, so that others do not count on
// one to be the first.
func (st *State) GiveUp(kind int) {
	for k := range st.followersOf(kind) {
		for _, a := range st.kinds[k].affinity {
			a.before = slices.DeleteFunc(a.before, func(other int) bool { return other == kind })
		}
	}
}

// Hurry says that pods are bound before all others that they have affinity to, if they
// have it to each other.
func (st *State) Hurry() {
	for k := range st.kinds {
		for _, a := range st.kinds[k].affinity {
			a.before = nil
		}
	}
}

// Leaders returns by kind the kinds that it has affinity to.
func (st *State) Leaders() [][]int {
	out := make([][]int, len(st.kinds))
	for kind := range st.kinds {
		for _, a := range st.kinds[kind].affinity {
			out[kind] = append(out[kind], st.addersOf(a.tallies[0])...)
		}
		slices.Sort(out[kind])
		out[kind] = slices.Compact(out[kind])
	}
	return out
}

// Orphaned returns by kind whether its pods have affinity to some that will never be there: only kinds
// that are orphaned themselves would be.
func (st *State) Orphaned() []bool {
	orphaned, there := make([]bool, len(st.kinds)), map[*tally]bool{}
	var led []int
	lead := func(kind int) {
		orphaned[kind] = slices.ContainsFunc(st.kinds[kind].affinity, func(a *affinity) bool {
			return !a.self && !there[a.tallies[0]] && !slices.ContainsFunc(a.tallies, func(t *tally) bool { return t.total > 0 })
		})
		if !orphaned[kind] {
			led = append(led, kind)
		}
	}
	for kind := range st.kinds {
		lead(kind)
	}
	followers := st.followers()
	for len(led) > 0 {
		kind := led[0]
		led = led[1:]
		for _, t := range st.kinds[kind].adds {
			if there[t] {
				continue
			}
			there[t] = true
			for _, k := range followers[t] {
				if orphaned[k] {
					lead(k)
				}
			}
		}
	}
	return orphaned
}
