package topology

import "slices"

// Move is a number of pods of one kind that are to run on a site.
type Move struct {
	Kind, Site, Pods int
}

// Admit adds the pods of the moves one after the other, in an order in which
// the rules allow each when its turn comes, and returns by move how many it
// could add. Kinds that are spread come before those that only count for
// others, else in the order of the moves.
func (st *State) Admit(moves []Move) []int {
	byKind, kinds := make([][]int, len(st.kinds)), []int{}
	for i, m := range moves {
		if byKind[m.Kind] == nil {
			kinds = append(kinds, m.Kind)
		}
		byKind[m.Kind] = append(byKind[m.Kind], i)
	}
	admitted := make([]int, len(moves))
	for turn := spreadOut; turn <= free; turn++ {
		for progress := true; progress; {
			progress = false
			for _, kind := range kinds {
				for st.turn(kind) <= turn && st.admit(moves, byKind[kind], admitted) {
					progress = true
				}
			}
		}
	}
	return admitted
}

// The turns kinds come in.
const (
	spreadOut = iota
	bound
	free
)

func (st *State) turn(kind int) int {
	k := &st.kinds[kind]
	switch {
	case slices.ContainsFunc(k.spreads, func(s spread) bool { return s.tally.key != Hostname }):
		return spreadOut
	case len(k.spreads) > 0 || len(k.affinity) > 0 || len(k.empties) > 0:
		return bound
	}
	return free
}

// admit goes once over some moves and reports whether it could add pods.
func (st *State) admit(moves []Move, some []int, admitted []int) bool {
	progress := false
	for _, i := range some {
		m := moves[i]
		if st.turn(m.Kind) == free && admitted[i] < m.Pods {
			st.Add(m.Kind, st.sites[m.Site], m.Site, m.Pods-admitted[i])
			admitted[i], progress = m.Pods, true
		}
		for admitted[i] < m.Pods && st.Allows(m.Kind, st.sites[m.Site]) && st.Cap(m.Kind, m.Site) > 0 {
			st.Add(m.Kind, st.sites[m.Site], m.Site, 1)
			admitted[i]++
			progress = true
		}
	}
	return progress
}
