// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
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
// them, a few times, and then many other orders. If it cannot add all, it keeps
// the order in which it could add most pods.
func (st *State) Admit(moves []Move) []int {
	byKind, kinds := make([][]int, len(st.kinds)), []int{}
	for i, m := range moves {
		if byKind[m.Kind] == nil {
			kinds = append(kinds, m.Kind)
		}
		byKind[m.Kind] = append(byKind[m.Kind], i)
	}
	for kind := range byKind {
		if byKind[kind] == nil {
			st.GiveUp(kind)
		}
	}
	slices.SortStableFunc(kinds, func(a, b int) int { return cmp.Compare(st.turn(a), st.turn(b)) })
	best, bestStarter, least := kinds, none, math.MaxInt
	starter, readers := none, st.readers(kinds)
	for range orders {
		admitted := st.admitInOrder(moves, byKind, kinds, starter, readers)
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
			mostMissedFirst(byKind[next], moves, admitted)
			continue
		}
		starter = none
		if kinds[0] == next {
			mostMissedFirst(byKind[next], moves, admitted)
		}
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind int) bool { return kind == next })
		kinds = slices.Insert(kinds, 0, next)
	}
	if !st.hopeless(moves) {
		if admitted := st.admitShuffled(moves); admitted != nil {
			return admitted
		}
	}
	return st.admitInOrder(moves, byKind, best, bestStarter, readers)
}

func mostMissedFirst(some []int, moves []Move, admitted []int) {
	slices.SortStableFunc(some, func(i, j int) int { return cmp.Compare(missed(moves, admitted, j), missed(moves, admitted, i)) })
}

// hopeless reports whether no order can let in all pods of the moves: the pod that comes last into
// a domain would be one too many there whichever that is, or two keep away from each other.
func (st *State) hopeless(moves []Move) bool {
	for _, m := range moves {
		st.Add(m.Kind, st.sites[m.Site], m.Site, m.Pods)
	}
	out := slices.ContainsFunc(moves, func(m Move) bool { return st.meetsForeign(m) || st.crowds(m, moves) })
	for _, m := range moves {
		st.Add(m.Kind, st.sites[m.Site], m.Site, -m.Pods)
	}
	return out
}

// meetsForeign reports whether, all pods being there, one of the move is where there are pods it keeps away
// from, or which keep away from it.
func (st *State) meetsForeign(m Move) bool {
	k, p := &st.kinds[m.Kind], st.sites[m.Site]
	return slices.ContainsFunc(k.empties, func(t *tally) bool {
		if t.key == Hostname {
			return st.named(m.Site) && t.at(m.Site) > k.addsTo(t)
		}
		return len(p[t.key]) == 1 && t.at(p[t.key][0]) > k.addsTo(t)
	})
}

// crowds reports whether, all pods being there, a spread constraint of the move's pods has too many in
// their domain, and so have those of all that came there. The domain with fewest pods never had
// more of them before.
func (st *State) crowds(m Move, moves []Move) bool {
	k, p := &st.kinds[m.Kind], st.sites[m.Site]
	return slices.ContainsFunc(k.spreads, func(s spread) bool {
		t := s.tally
		if t.key == Hostname || s.self == 0 || !t.filter.settled(p) || st.counts(t.filter, m.Site) != surely {
			return false
		}
		d := p[t.key][0]
		return k.over(&s, d) && !slices.ContainsFunc(moves, func(o Move) bool {
			other := &st.kinds[o.Kind]
			return other.addsTo(t) > 0 && slices.Contains(st.sites[o.Site][t.key], d) &&
				!slices.ContainsFunc(other.spreads, func(s spread) bool { return s.tally == t && other.over(&s, d) })
		})
	})
}

// Bounds of the search for an order by trial: how many orders, and how many times
// a rule is asked for all of them, and again for those that look ahead.
const (
	shuffles     = 96
	shuffleLooks = 1 << 14
)

// admitShuffled adds the pods of the moves in one of many other orders, by kind
// and by move, one pod at a time, always of the first move that can. It returns
// nil when none of them has all pods added, or the moves are too many to try.
func (st *State) admitShuffled(moves []Move) []int {
	rng := rand.New(rand.NewPCG(1, 2))                     // the same orders whenever the moves are the same
	order, kinds := make([]int, len(moves)), map[int]int{} // position of each kind's rank
	for i, m := range moves {
		order[i] = i
		if _, known := kinds[m.Kind]; !known {
			kinds[m.Kind] = len(moves) + len(kinds)
		}
	}
	rank := make([]int, len(moves)+len(kinds))
	for n := 0; n < shuffles && st.Looks < shuffleLooks; n++ {
		for i := range rank {
			rank[i] = rng.IntN(1 << 20)
		}
		slices.SortFunc(order, func(a, b int) int {
			byMove := cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
			if n%2 == 1 {
				return byMove
			}
			return cmp.Or(cmp.Compare(rank[kinds[moves[a].Kind]], rank[kinds[moves[b].Kind]]), byMove)
		})
		admitted, all := st.admitByTurns(moves, order)
		if all {
			return admitted
		}
		st.withdraw(moves, admitted)
	}
	ahead := &ahead{State: st, moves: moves, admitted: make([]int, len(moves)), seen: map[string]bool{}, most: st.Looks + (1+st.Patience)*shuffleLooks}
	if ahead.search() {
		return ahead.admitted
	}
	return nil
}

// admitByTurns adds pods one at a time, always of the first of the moves in the
// order that has pods which can be added. It reports whether it could add all.
func (st *State) admitByTurns(moves []Move, order []int) (admitted []int, all bool) {
	admitted = make([]int, len(moves))
	for st.Looks < 2*shuffleLooks {
		i := slices.IndexFunc(order, func(i int) bool { return admitted[i] < moves[i].Pods && st.lets(moves[i]) })
		if i < 0 {
			break
		}
		st.one(moves[order[i]], 1)
		admitted[order[i]]++
	}
	return admitted, !slices.ContainsFunc(order, func(i int) bool { return admitted[i] < moves[i].Pods })
}

// one adds a pod of the move, or takes it away.
func (st *State) one(m Move, n int) { st.Add(m.Kind, st.sites[m.Site], m.Site, n) }

// ahead searches for an order by depth first, that move first after which most
// pods can be added that not everything lets in. Pods that everything lets in come
// last among equals: they may close a domain to others.
type ahead struct {
	*State
	moves    []Move
	admitted []int // by move, so far
	seen     map[string]bool
	most     int // how often the rules may be asked
}

// search adds the pods that are left. It adds none if it finds no order for all.
func (a *ahead) search() bool {
	var next []int
	key, done := make([]byte, 0, 2*len(a.moves)), true
	for i, m := range a.moves {
		key = binary.AppendUvarint(key, uint64(a.admitted[i]))
		if left := m.Pods - a.admitted[i]; left > 0 {
			done = false
			if a.lets(m) {
				next = append(next, i)
			}
		}
	}
	if done || a.seen[string(key)] || a.Looks > a.most {
		return done
	}
	a.seen[string(key)] = true
	opens := make([]int, len(a.moves))
	for _, i := range next {
		if a.Looks > a.most { // of many moves, this alone takes more
			return false
		}
		opens[i] = a.opens(i)
	}
	slices.SortStableFunc(next, func(i, j int) int {
		return cmp.Or(cmp.Compare(opens[j], opens[i]), cmp.Compare(a.turn(a.moves[i].Kind), a.turn(a.moves[j].Kind)))
	})
	for _, i := range next {
		a.one(a.moves[i], 1)
		a.admitted[i]++
		if a.search() {
			return true
		}
		a.one(a.moves[i], -1)
		a.admitted[i]--
	}
	return false
}

// opens returns how many pods with rules can be added after one of a move, itself
// among them, so that nothing is won by waiting.
func (a *ahead) opens(move int) int {
	a.one(a.moves[move], 1)
	n := 0
	for i, m := range a.moves {
		if left := m.Pods - a.admitted[i]; a.turn(m.Kind) != free && (i == move || a.lets(m)) {
			n += left
		}
	}
	a.one(a.moves[move], -1)
	return n
}

// lets reports whether one more pod of the move can be added.
func (st *State) lets(m Move) bool {
	st.Looks++
	return st.Allows(m.Kind, st.sites[m.Site]) && st.Cap(m.Kind, m.Site) > 0
}

// missed returns how many pods of a move were not admitted.
func missed(moves []Move, admitted []int, i int) int { return moves[i].Pods - admitted[i] }

// none stands for no kind.
const none = -1

// admitInOrder adds what it can of the moves, always of the first of the kinds
// that has pods which can be added, after one pod of the starter. Readers tells by
// kind for which kinds its pods count.
func (st *State) admitInOrder(moves []Move, byKind [][]int, kinds []int, starter int, readers [][]int) []int {
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
	waits := make([]bool, len(st.kinds)) // none of its pods can be added until one of another kind was
	for i := 0; i < len(kinds); i++ {
		kind := kinds[i]
		if waits[kind] {
			continue
		}
		waits[kind] = true
		if st.admit(moves, byKind[kind], admitted) {
			for _, other := range readers[kind] {
				waits[other] = false
			}
			i = -1
		}
	}
	return admitted
}

// readers returns by kind those of the kinds that its pods count for.
func (st *State) readers(kinds []int) [][]int {
	of := map[*tally][]int{}
	for _, kind := range kinds {
		k := &st.kinds[kind]
		for i := range k.spreads {
			of[k.spreads[i].tally] = append(of[k.spreads[i].tally], kind)
		}
		for _, t := range k.empties {
			of[t] = append(of[t], kind)
		}
		for _, a := range k.affinity {
			for _, t := range a.tallies {
				of[t] = append(of[t], kind)
			}
		}
	}
	out := make([][]int, len(st.kinds))
	for _, kind := range kinds {
		for _, t := range st.kinds[kind].adds {
			out[kind] = append(out[kind], of[t]...)
		}
	}
	return out
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

// withdraw removes what was admitted of the moves.
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

// admit goes once over some moves of one kind and reports whether it could add pods.
func (st *State) admit(moves []Move, some []int, admitted []int) bool {
	progress := false
	unruled := st.turn(moves[some[0]].Kind) == free
	for _, i := range some {
		m := moves[i]
		if unruled && admitted[i] < m.Pods {
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
