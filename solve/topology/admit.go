package topology

import (
	"cmp"
	"math"
	"slices"
)

// Move is a number of pods of one kind that are to run on a site.
type Move struct {
	Kind, Site, Pods int
}

// orders is how many orders of kinds Admit tries.
const orders = 16

// Admit adds the pods of the moves one after the other, in an order in which
// the rules allow each when its turn comes, and returns by move how many it
// could add. Kinds that are spread come before those that only count for
// others, else in the order of the moves. If pods of a kind cannot be added,
// Admit tries again with one of them in front of all others, then with all of
// them, a few times, and keeps the order in which it could add most pods.
func (st *State) Admit(moves []Move) []int {
	byKind, kinds := make([][]int, len(st.kinds)), []int{}
	for i, m := range moves {
		if byKind[m.Kind] == nil {
			kinds = append(kinds, m.Kind)
		}
		byKind[m.Kind] = append(byKind[m.Kind], i)
	}
	slices.SortStableFunc(kinds, func(a, b int) int { return cmp.Compare(st.turn(a), st.turn(b)) })
	best, bestStarter, least := kinds, none, math.MaxInt
	starter := none
	for range orders {
		admitted := st.admitInOrder(moves, byKind, kinds, starter)
		refused, missing := st.refused(moves, admitted)
		if len(refused) == 0 {
			return admitted
		}
		if missing < least {
			least, best, bestStarter = missing, kinds, starter
		}
		st.withdraw(moves, admitted)
		next := refused[0]
		if starter != next {
			starter = next
			continue
		}
		starter = none
		if kinds[0] == next {
			slices.SortStableFunc(byKind[next], func(i, j int) int { return cmp.Compare(missed(moves, admitted, j), missed(moves, admitted, i)) })
		}
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind int) bool { return kind == next })
		kinds = slices.Insert(kinds, 0, next)
	}
	return st.admitInOrder(moves, byKind, best, bestStarter)
}

// missed returns how many pods of a move were not admitted.
func missed(moves []Move, admitted []int, i int) int { return moves[i].Pods - admitted[i] }

// none stands for no kind.
const none = -1

// admitInOrder adds what it can of the moves, always of the first of the kinds
// that has pods which can be added, after one pod of the starter.
func (st *State) admitInOrder(moves []Move, byKind [][]int, kinds []int, starter int) []int {
	admitted := make([]int, len(moves))
	if starter != none {
		for _, i := range byKind[starter] {
			if st.Allows(starter, st.sites[moves[i].Site]) && st.Cap(starter, moves[i].Site) > 0 {
				st.Add(starter, st.sites[moves[i].Site], moves[i].Site, 1)
				admitted[i]++
				break
			}
		}
	}
	for i := 0; i < len(kinds); i++ {
		if st.admit(moves, byKind[kinds[i]], admitted) {
			i = -1
		}
	}
	return admitted
}

// refused returns the kinds of pods that were not admitted, and how many pods
// those are.
func (st *State) refused(moves []Move, admitted []int) (kinds []int, pods int) {
	for i, m := range moves {
		if admitted[i] < m.Pods {
			kinds, pods = append(kinds, m.Kind), pods+m.Pods-admitted[i]
		}
	}
	return kinds, pods
}

// withdraw takes away what was admitted of the moves.
func (st *State) withdraw(moves []Move, admitted []int) {
	for i, m := range moves {
		st.Add(m.Kind, st.sites[m.Site], m.Site, -admitted[i])
	}
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
