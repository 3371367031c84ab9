// SPDX-License-Identifier: Apache-2.0

package topology

// Balance is a spread constraint on another key than the hostname that counts the pods of
// one kind and no other pending ones.
type Balance struct {
	Key, MaxSkew int
	tally        *tally
}

// Counts returns how many pods a domain has at least and at most, as they are counted now.
func (b Balance) Counts(domain int) (least, most int) {
	most = b.tally.at(domain)
	return most - b.tally.doubt.at(domain), most
}

// Balances returns those of the kind.
func (st *State) Balances(kind int) []Balance {
	var out []Balance
	k := &st.kinds[kind]
	for i := range k.spreads {
		if s := &k.spreads[i]; s.tally.key != Hostname && s.self > 0 && len(st.addersOf(s.tally)) == 1 {
			out = append(out, Balance{s.tally.key, s.MaxSkew, s.tally})
		}
	}
	return out
}
