// SPDX-License-Identifier: Apache-2.0

package topology

import "slices"

// Mark is how many pods were where at some time.
type Mark struct {
	final   bool
	tallies map[*tally]tally
}

// Mark returns what takes the counts back to what they are now.
func (st *State) Mark() Mark {
	m := Mark{final: st.final, tallies: map[*tally]tally{}}
	for i := range st.kinds {
		for _, t := range st.kinds[i].tallies() {
			if _, known := m.tallies[t]; !known {
				m.tallies[t] = t.clone()
			}
		}
	}
	return m
}

// Rollback takes the counts back to the mark, which can be used again.
func (st *State) Rollback(m Mark) {
	st.final = m.final
	for t, was := range m.tallies {
		*t = was.clone()
	}
}

// tallies returns all that the rules ask or count in.
func (k *rules) tallies() []*tally {
	out := slices.Concat(k.empties, k.adds)
	for i := range k.spreads {
		out = append(out, k.spreads[i].tally)
	}
	for _, a := range k.affinity {
		out = append(out, a.tallies...)
	}
	return out
}

// clone returns a copy that shares nothing with t that changes.
func (t *tally) clone() tally {
	out := *t
	out.counts, out.doubt, out.unsure = t.counts.clone(), t.doubt.clone(), t.unsure.clone()
	return out
}
