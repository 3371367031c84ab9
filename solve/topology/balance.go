// SPDX-License-Identifier: Apache-2.0

package topology

import "slices"

// Balance returns the key of a spread constraint of the kind that counts its own pods
// and no other pending ones, and its maxSkew; false if it has none, or nodes for it are
// settled by several keys.
func (st *State) Balance(kind int) (key, skew int, ok bool) {
	k := &st.kinds[kind]
	if len(k.keys) != 1 {
		return 0, 0, false
	}
	for i := range k.spreads {
		s := &k.spreads[i]
		counted := func(o rules) bool { return slices.Contains(o.adds, s.tally) }
		if s.tally.key != Hostname && s.self > 0 && !slices.ContainsFunc(st.kinds[:kind], counted) && !slices.ContainsFunc(st.kinds[kind+1:], counted) {
			return s.tally.key, s.MaxSkew, true
		}
	}
	return 0, 0, false
}
