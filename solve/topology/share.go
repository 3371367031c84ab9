// SPDX-License-Identifier: Apache-2.0

package topology

import "slices"

// Minds returns the numbers of the keys, but the hostname, by which it matters
// to the kind where pods of others are.
func (st *State) Minds(kind int) []int {
	k := &st.kinds[kind]
	var keys []int
	for _, s := range k.spreads {
		keys = append(keys, s.tally.key)
	}
	for _, a := range k.affinity {
		for _, t := range a.tallies {
			keys = append(keys, t.key)
		}
	}
	return slices.DeleteFunc(keys, func(key int) bool { return key == Hostname })
}

// Careless reports whether no rule keeps the kind from any place: at most, other
// pods count it.
func (st *State) Careless(kind int) bool {
	k := &st.kinds[kind]
	return len(k.spreads)+len(k.affinity)+len(k.empties) == 0
}

// Joins reports whether the kind has affinity that ties it to a node.
func (st *State) Joins(kind int) bool {
	return slices.ContainsFunc(st.kinds[kind].affinity, func(a *affinity) bool { return a.joins() })
}

// WouldAllow reports whether the rules on keys other than the hostname would
// let a pod of the kind run at the place once a pod it has affinity to is there.
func (st *State) WouldAllow(kind int, p Place) bool {
	k := st.kinds[kind]
	for _, a := range k.affinity {
		for _, t := range a.tallies {
			if t.key != Hostname && len(p[t.key]) != 1 {
				return false
			}
		}
	}
	k.affinity = nil
	return k.allows(p)
}

// NoDomain stands for the places without a label.
const NoDomain = -1

// KeepsOut reports whether a rule about the key alone keeps pods of the kind out of the domain,
// wherever else a place in it is.
func (st *State) KeepsOut(kind, key, domain int) bool {
	k := &st.kinds[kind]
	for i := range k.spreads {
		if s := &k.spreads[i]; s.tally.key == key && (domain == NoDomain || s.exceeds(domain)) {
			return true
		}
	}
	return domain != NoDomain && slices.ContainsFunc(k.empties, func(t *tally) bool { return t.key == key && t.at(domain) > 0 })
}

// Excludes reports whether anti-affinity on the hostname keeps pods of the two
// kinds from sharing a node.
func (st *State) Excludes(kind, other int) bool {
	against := func(a, b *rules) bool {
		return slices.ContainsFunc(a.empties, func(t *tally) bool { return t.key == Hostname && slices.Contains(b.adds, t) })
	}
	return against(&st.kinds[kind], &st.kinds[other]) || against(&st.kinds[other], &st.kinds[kind])
}

// Beside returns how many pods of the kind the rules on the hostname let join
// pods of others on a new node, at most Unbounded.
func (st *State) Beside(kind int, others []Move) int {
	k := &st.kinds[kind]
	count := func(t *tally) (n int) {
		for _, o := range others {
			if slices.Contains(st.kinds[o.Kind].adds, t) {
				n += o.Pods
			}
		}
		return n
	}
	most := st.Most(kind)
	for i := range k.spreads {
		if s := &k.spreads[i]; s.tally.key == Hostname {
			left := s.MaxSkew - count(s.tally)
			if left < s.self {
				return 0
			}
			if s.self > 0 {
				most = min(most, left)
			}
		}
	}
	for _, t := range k.empties {
		if t.key == Hostname && count(t) > 0 {
			return 0
		}
	}
	return most
}

// Skew returns how many pods of the kind the rules on keys other than the hostname let
// start in one domain while others have none, at most Unbounded.
func (st *State) Skew(kind int) int {
	most := Unbounded
	for i := range st.kinds[kind].spreads {
		if s := &st.kinds[kind].spreads[i]; s.tally.key != Hostname && s.self > 0 {
			most = min(most, s.MaxSkew)
		}
	}
	return most
}

// Most returns how many pods of the kind the rules on the hostname let share a
// new node, at most Unbounded.
func (st *State) Most(kind int) int {
	k := &st.kinds[kind]
	most := Unbounded
	for i := range k.spreads {
		if s := &k.spreads[i]; s.tally.key == Hostname && s.self > 0 {
			most = min(most, s.MaxSkew)
		}
	}
	for _, t := range k.empties {
		if t.key == Hostname && slices.Contains(k.adds, t) {
			most = 1
		}
	}
	return most
}

// Apart returns for each kind those it must share no new node with. Where
// kinds are spread over nodes and counted together they are a Group instead.
// The caller must not modify it.
func (st *State) Apart() [][]int {
	if st.apart == nil {
		st.apart = st.findApart()
	}
	return st.apart
}

func (st *State) findApart() [][]int {
	out := make([][]int, len(st.kinds))
	apart := func(a, b int) {
		if a != b {
			out[a], out[b] = append(out[a], b), append(out[b], a)
		}
	}
	for i := range st.kinds {
		k := &st.kinds[i]
		for _, t := range k.empties {
			if t.key == Hostname {
				for _, j := range st.addersOf(t) {
					apart(i, j)
				}
			}
		}
		for j := range k.spreads {
			if s := &k.spreads[j]; s.tally.key == Hostname {
				for _, other := range st.addersOf(s.tally) {
					if !st.spreadAlike(i, other, s) {
						apart(i, other)
					}
				}
			}
		}
	}
	for i := range out {
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out
}

// Mixed reports whether some kinds are kept apart only because one of them,
// which is not spread over nodes itself, counts for the other's spread.
func (st *State) Mixed() bool {
	for i := range st.kinds {
		for j := range st.kinds[i].spreads {
			s := &st.kinds[i].spreads[j]
			if s.tally.key == Hostname && slices.ContainsFunc(st.addersOf(s.tally), func(o int) bool { return o != i && !st.spreadAlike(i, o, s) }) {
				return true
			}
		}
	}
	return false
}

// Group is kinds of which one new node takes at most Limit pods together.
type Group struct {
	Limit int
	Kinds []int
}

// Groups returns the kinds that are spread over nodes and counted together.
func (st *State) Groups() []Group {
	var out []Group
	for i := range st.kinds {
		for j := range st.kinds[i].spreads {
			s := &st.kinds[i].spreads[j]
			if s.tally.key != Hostname || s.self == 0 {
				continue
			}
			g := Group{Limit: s.MaxSkew}
			for _, other := range st.addersOf(s.tally) {
				if other == i || st.spreadAlike(i, other, s) {
					g.Kinds = append(g.Kinds, other)
				}
			}
			if len(g.Kinds) > 1 && !slices.ContainsFunc(out, func(o Group) bool { return o.Limit == g.Limit && slices.Equal(o.Kinds, g.Kinds) }) {
				out = append(out, g)
			}
		}
	}
	return out
}

// spreadAlike reports whether the other kind is spread over nodes just as
// tightly, counting this one too.
func (st *State) spreadAlike(kind, other int, s *spread) bool {
	return s.self > 0 && slices.ContainsFunc(st.kinds[other].spreads, func(o spread) bool {
		return o.tally.key == Hostname && o.self > 0 && o.MaxSkew == s.MaxSkew && slices.Contains(st.kinds[kind].adds, o.tally)
	})
}
